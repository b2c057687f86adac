// npm run livelock: a deployment in which every claim takes longer than its lease, with items that never come to an end.
//
//   npm run livelock -- [--variant lock|proxy|statement|lost] [--lease-ms N] [--healthy 500] [--processes 8] [--json]
//
// 8 processes with 4 slots each, 12 poisoned instances among 500 healthy ones, leases of 5 s, 1 s and 1 ms (and 10 s for
// comparison). With --json the last line is { variants: [...] }. Exit code 0 only when every healthy instance finished,
// every poisoned one was ended once, and none was delivered more often than maxAttempts + 1.

import path from 'node:path'
import { parseArgs } from 'node:util'

import { onStop, root, run, title } from './lib/run.mjs'

const { values: options } = parseArgs({
  options: {
    variant: { type: 'string', multiple: true, default: ['lock', 'proxy', 'statement', 'lost'] },
    'lease-ms': { type: 'string', multiple: true, default: ['5000', '1000', '1', '10000'] },
    healthy: { type: 'string', default: '500' },
    processes: { type: 'string', default: '8' },
    json: { type: 'boolean', default: false },
    'no-build': { type: 'boolean', default: false },
  },
})

/** Every reply of the slow network takes as long as a claim, and a slot waits for two of them: the claim's and the renewal's. Five
 * hundred instances in eight times four slots take 500 / 32 * 2 * 6.4 s = 200 s, and their first and last replies half a minute. */
const LIMIT_MS = { proxy: 900_000 }

if (!options['no-build'] && (await run(process.execPath, [path.join(root, 'scripts/build.mjs')])).code !== 0) process.exit(1)
const { startTestServer } = await import('./lib/server.mjs')
const { runVariant } = await import('./livelock/run.mjs')
const server = await startTestServer({ port: 0 })
onStop(() => server.stop())

const variants = []
for (const variant of options.variant) {
  for (const lease of options['lease-ms']) {
    title(`${variant}, leases of ${lease} ms`)
    const plan = { server, variant, leaseMs: Number(lease), healthy: Number(options.healthy), processes: Number(options.processes) }
    const result = await runVariant({ ...plan, limitMs: LIMIT_MS[variant] ?? 300_000 })
    variants.push(result)
    console.log(
      `claims of ${result.claimMs} ms: ${result.healthyFinished} of ${result.healthyTotal} healthy finished, ${result.healthyPoisoned} poisoned; ` +
        `${result.poisonSettled} of ${result.poisonTotal} poisoned ended, ${result.deliveriesMax} deliveries at most (${result.maxAttempts} allowed), ` +
        `${result.intervalsMs.join(', ')} ms between them; ${result.claimsPerS} claims/s, ${result.seconds} s`)
  }
}
await server.stop()
if (options.json) console.log(JSON.stringify({ variants }))

const holds = (result) =>
  result.healthyFinished === result.healthyTotal &&
  result.healthyPoisoned === 0 &&
  result.poisonSettled === result.poisonTotal &&
  result.poisonEnds === result.poisonTotal &&
  result.poisonReported === result.poisonTotal &&
  result.deliveriesMax <= result.maxAttempts + 1
process.exitCode = variants.every(holds) ? 0 : 1
