// The database stops under eight processes for longer than they may be silent. When it is back nobody takes another for
// dead, everything that was accepted ends, and each step has one result.

import { setTimeout as delay } from 'node:timers/promises'

import pg from 'pg'

import { Client, PostgresProvider } from '../../index.mjs'
import { Database } from '../chaos/world.mjs'
import { onStop } from '../lib/run.mjs'
import { stopAndCountDeaths } from './calm.mjs'
import { SETTINGS } from './kill.mjs'
import { startAll } from './process.mjs'

const NODES = 8
const INSTANCES = 100
const STEPS = 12

/** Gives `{ seconds, accepted, finished, doubled, falseDeaths }`. */
export async function measureOutage({ seconds }) {
  const database = await Database.start()
  onStop(() => database.stop())
  const schema = 'outage'
  try {
    const options = { ...SETTINGS.default, logLevel: 'off' }
    const processes = await startAll(Array.from({ length: NODES }, () => ({ url: database.url, schema, role: 'working', options })))
    const provider = await PostgresProvider.connectWithSchema(database.url, schema)
    const client = new Client(provider)
    const ids = Array.from({ length: INSTANCES }, (_, index) => `i${index}`)
    await Promise.all(ids.map((id) => client.startOrchestration(id, 'steps', STEPS)))
    await delay(3000)
    await database.stopHard()
    await delay(seconds * 1000)
    await database.restart()
    const ends = await Promise.all(ids.map((id) => ended(client, id)))
    const finished = ends.filter((end) => end?.status === 'Completed' && end.output === STEPS).length
    const doubled = await countDoubled(database.url, schema)
    // Whoever is to be declared dead by mistake would be within a stale age.
    await delay(SETTINGS.default.staleAfterMs + 2 * SETTINGS.default.heartbeatIntervalMs)
    const falseDeaths = await stopAndCountDeaths(processes)
    await provider.close()
    return { seconds, accepted: ids.length, finished, doubled, falseDeaths }
  } finally {
    await database.stop()
  }
}

async function ended(client, id) {
  const until = Date.now() + 120_000
  while (Date.now() < until) {
    try {
      return await client.waitForOrchestration(id, until - Date.now())
    } catch {
      await delay(500)
    }
  }
  return null
}

async function countDoubled(url, schema) {
  const sql = new pg.Client(url)
  await sql.connect()
  const { rows } = await sql.query(
    `select count(*)::int as n from (select 1 from "${schema}".history where source is not null
     group by instance, execution, source having count(*) > 1) twice`,
  )
  await sql.end()
  return rows[0].n
}
