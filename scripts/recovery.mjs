// npm run recovery: kills a worker and tells when its work goes on elsewhere, counts false deaths, measures nodes at rest.
//
//   npm run recovery -- [--only default|fast] [--calm-seconds N] [--rest-seconds N] [--no-build] [--json]
//   npm run recovery -- --outage [--outage-seconds N]   the database stops for a minute under eight processes; nothing else
//   npm run recovery -- --blocked                       loops blocked and a pool held for a minute each; nothing else
//
// Exit code 0 when the work of the killed worker ran within its bound, nobody alive was declared dead, and 50 nodes at rest
// cost the database at most 3 ms in each second. With --only nothing but that kill is measured.

import path from 'node:path'
import { parseArgs } from 'node:util'

import pg from 'pg'

import { onStop, root, run, title } from './lib/run.mjs'

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    outage: { type: 'boolean', default: false },
    'outage-seconds': { type: 'string', default: '60' },
    blocked: { type: 'boolean', default: false },
    'calm-seconds': { type: 'string', default: '300' },
    'rest-seconds': { type: 'string', default: '30' },
    'no-build': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
if (options.only !== undefined && !['default', 'fast'].includes(options.only)) {
  console.error("--only takes 'default' or 'fast'")
  process.exit(2)
}
if (!options['no-build'] && (await run(process.execPath, [path.join(root, 'scripts/build.mjs')])).code !== 0) process.exit(1)

if (options.outage || options.blocked) process.exit((await (options.outage ? outage() : blocked())) ? 0 : 1)

const { startTestServer } = await import('./lib/server.mjs')
const { keepsBound, measureKill } = await import('./recovery/kill.mjs')
const { countFalseDeaths } = await import('./recovery/calm.mjs')
const { measureRest } = await import('./recovery/rest.mjs')

/** What 50 nodes may cost in each second, in ms of the database's time. */
const REST_BOUND_MS = 3

const server = await startTestServer({ settings: { 'pg_stat_statements.track_planning': 'on' } })
onStop(() => server.stop())
const sql = new pg.Client(server.url)
await sql.connect()
await sql.query('create extension if not exists pg_stat_statements')

const result = {}
const say = (text) => options.json || console.log(text)
let holds = true
try {
  for (const setting of options.only === undefined ? ['fast', 'default'] : [options.only]) {
    if (!options.json) title(`a worker is killed, ${setting} settings`)
    const times = await measureKill({ url: server.url, schema: `kill_${setting}`, sql, setting })
    result[setting] = times
    holds &&= keepsBound(times)
    say(`${times.items} items ran elsewhere: p50 ${times.p50Ms} ms, p99 ${times.p99Ms} ms, max ${times.maxMs} ms, bound ${times.boundMs} ms`)
  }
  if (options.only === undefined) {
    if (!options.json) title('nodes at rest')
    const rest = await measureRest({ url: server.url, schema: 'rest', sql, seconds: Number(options['rest-seconds']), names: 1 })
    const many = await measureRest({ url: server.url, schema: 'rest_many', sql, seconds: Number(options['rest-seconds']), names: 50 })
    result.restStatementsPerS = round(rest.statementsPerS)
    result.restDbMsPerS = round(rest.dbMsPerS)
    result.restManyNamesStatementsPerS = round(many.statementsPerS)
    result.restManyNamesDbMsPerS = round(many.dbMsPerS)
    holds &&= Math.max(rest.dbMsPerS, many.dbMsPerS) <= REST_BOUND_MS
    say(`50 nodes: ${result.restStatementsPerS} statements and ${result.restDbMsPerS} ms of database time per second`)
    say(`with 50 names of each kind: ${result.restManyNamesStatementsPerS} and ${result.restManyNamesDbMsPerS} ms`)
    if (!options.json) title('nodes under load')
    result.falseDeaths = await countFalseDeaths({ url: server.url, schema: 'calm', seconds: Number(options['calm-seconds']) })
    holds &&= result.falseDeaths === 0
    say(`${result.falseDeaths} false deaths`)
  }
} finally {
  await sql.end()
  await server.stop()
}
if (options.json) console.log(JSON.stringify(result))
process.exitCode = holds ? 0 : 1

async function outage() {
  const { measureOutage } = await import('./recovery/outage.mjs')
  const { seconds, accepted, finished, doubled, falseDeaths } = await measureOutage({ seconds: Number(options['outage-seconds']) })
  console.log(
    options.json
      ? JSON.stringify({ outage: { seconds, accepted, finished, doubled, falseDeaths } })
      : `the database was down for ${seconds} s: ${finished} of ${accepted} finished, ${doubled} results doubled, ${falseDeaths} false deaths`,
  )
  return finished === accepted && doubled === 0 && falseDeaths === 0
}

/** The tests of blocked loops and held pools, with a minute instead of seconds. */
async function blocked() {
  const server = path.join(root, 'scripts/lib/server.mjs')
  const tests = ['--test', '--test-name-pattern', 'blocking|heartbeats and renewals go on', path.join(root, '__test__/engine/liveness.test.mjs')]
  const env = { HOLDFAST_TEST_BLOCK_MS: '60000' }
  return (await run(process.execPath, [server, process.execPath, ...tests], { env })).code === 0
}

function round(number) {
  return Math.round(number * 100) / 100
}
