// npm run limits: the sizes that docs/limits.md promises, tried on a real PostgreSQL.
//
//   npm run limits -- [--only NAME[,NAME]] [--scale 0.1] [--json] [--no-build]
//
// Each case works, or is refused with the documented error, and the instance beside it still runs: nothing is wedged. What is
// asserted is counted work (rows, events, statements), never time; times are printed. `--scale` makes the large counts
// smaller. With --json the last line is { cases: [{ name, ok, count, seconds, … }] }. Exit code 0 only when all hold.

import path from 'node:path'
import { parseArgs } from 'node:util'

import { root, run, title } from './lib/run.mjs'

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    scale: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
    'no-build': { type: 'boolean', default: false },
  },
})
if (!options['no-build'] && (await run(process.execPath, [path.join(root, 'scripts/build.mjs')])).code !== 0) process.exit(1)

const { startTestServer } = await import('./lib/server.mjs')
const { CASES } = await import('./limits/cases.mjs')
const { openWorld } = await import('./limits/world.mjs')

const wanted = options.only === undefined ? Object.keys(CASES) : options.only.split(',')
const unknown = wanted.find((name) => !Object.hasOwn(CASES, name))
if (unknown !== undefined) {
  console.error(`no case '${unknown}'; there are ${Object.keys(CASES).join(', ')}`)
  process.exit(2)
}

const server = await startTestServer()
const cases = []
try {
  for (const name of wanted) {
    title(name)
    const from = performance.now()
    const world = await openWorld(server.url, `limits-${name}`)
    let found
    try {
      found = { ok: true, ...(await CASES[name](world, Number(options.scale))) }
      await world.stillRuns()
    } catch (error) {
      found = { ok: false, error: error.message }
    }
    await world.close()
    const row = { name, seconds: Math.round(performance.now() - from) / 1000, ...found }
    cases.push(row)
    console.log(Object.entries(row).map(([key, value]) => `${key} ${value}`).join(', '))
  }
} finally {
  await server.stop()
}
if (options.json) console.log(JSON.stringify({ cases }))
process.exitCode = cases.every(({ ok }) => ok) ? 0 : 1
