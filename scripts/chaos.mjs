// npm run chaos: real processes, a real database and a real network, all of them failing; then an audit of everything.
//
//   npm run chaos -- --seconds 60 --seed 1 [--workers 3] [--callers 8] [--json]
//
// With --json the last line is { faults, started, finished, lost, doubled, violations, recoveryP99Ms, … }. The order of faults
// comes from the seed; when they strike does not, so a run is alike but never the same. Exit code 0 only when nothing was
// lost, doubled or broken.

import path from 'node:path'
import { parseArgs } from 'node:util'

import pg from 'pg'

import { onStop, root, run, title } from './lib/run.mjs'

const { values: options } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    workers: { type: 'string', default: '3' },
    callers: { type: 'string', default: '8' },
    json: { type: 'boolean', default: false },
    'no-build': { type: 'boolean', default: false },
  },
})
const seed = Number(options.seed)
if (!options['no-build'] && (await run(process.execPath, [path.join(root, 'scripts/build.mjs')])).code !== 0) process.exit(1)

const { Client, PostgresProvider } = await import('../index.mjs')
const { audit, keepAuditing, recoveryTimes, settle } = await import('./chaos/audit.mjs')
const { inject, randomFrom } = await import('./chaos/faults.mjs')
const { load } = await import('./chaos/load.mjs')
const { PROGRAMS } = await import('./chaos/programs.mjs')
const { startWorld } = await import('./chaos/world.mjs')

title(`chaos for ${options.seconds} s, seed ${seed}`)
const world = await startWorld({ workers: Number(options.workers), seed })
onStop(() => world.stop())
const provider = await PostgresProvider.connect(world.url)
const client = new Client(provider)
const until = Date.now() + Number(options.seconds) * 1000
const from = Date.now()
const say = (kind) => options.json || console.log(`${((Date.now() - from) / 1000).toFixed(1)} s ${kind}`)
const db = new pg.Pool({ connectionString: world.database.url, max: 2 })
db.on('error', () => {})
const orphans = keepAuditing(world.database.url)
const [faults, accepted] = await Promise.all([
  inject(world, seed, until, say),
  load(client, randomFrom(seed + 1), until, Number(options.callers)),
])
await provider.close()
const open = await settle(db)
const { looks, findings } = await orphans.end()
const result = await audit(db, world.ledger, accepted, ({ kind, n }) => PROGRAMS[kind].expected(n))
const times = (await recoveryTimes(world.ledger, world.kills)).sort((a, b) => a - b)
const p99 = times[Math.max(0, Math.ceil(times.length * 0.99) - 1)] ?? null
result.violations.push(...findings)
await db.end()
await world.stop()

const report = {
  seconds: Number(options.seconds),
  seed,
  faults,
  started: accepted.length,
  finished: result.finished,
  lost: result.lost,
  doubled: result.doubled,
  violations: result.violations.length,
  recoveryP99Ms: p99,
  recoveries: times.length,
  stillOpen: open,
  audits: looks,
}
for (const text of result.violations.slice(0, 20)) console.log(`violation: ${text}`)
if (options.json) console.log(JSON.stringify(report))
else console.log(report)
process.exitCode = result.lost + result.doubled + result.violations.length === 0 && accepted.length > 0 ? 0 : 1
