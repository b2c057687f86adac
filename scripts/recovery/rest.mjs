// What nodes with nothing to do cost the database: statements and time (planning and execution) per second.

import { setTimeout as delay } from 'node:timers/promises'

import { startAll } from './process.mjs'

const NODES = 50
const PROCESSES = 5

/** Nodes with `names` activities and orchestrations each, watched for so long. */
export async function measureRest({ url, schema, sql, seconds, names }) {
  const part = { url, schema, role: 'resting', runtimes: NODES / PROCESSES, names }
  const processes = await startAll(Array.from({ length: PROCESSES }, () => part))
  // Prepared statements settle on their plans within the first calls.
  await delay(15_000)
  await sql.query('select pg_stat_statements_reset()')
  const began = Date.now()
  await delay(seconds * 1000)
  const { rows } = await sql.query(
    `select coalesce(sum(calls), 0)::float as calls, coalesce(sum(total_plan_time + total_exec_time), 0) as ms
     from pg_stat_statements where query not like '%pg_stat_statements%'`,
  )
  const took = (Date.now() - began) / 1000
  await Promise.all(processes.map((each) => each.stop()))
  return { statementsPerS: rows[0].calls / took, dbMsPerS: rows[0].ms / took }
}
