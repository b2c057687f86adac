// One schema, one runtime and one SQL session for a case; handlers are registered by the case before it starts.

import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'

import pg from 'pg'

import { Client, PostgresProvider, Runtime } from '../../index.mjs'

/** How long a case may take before it counts as wedged. */
const LIMIT_MS = 15 * 60_000

export async function openWorld(url, name) {
  const schema = `${name.replaceAll('-', '_')}`
  const provider = await PostgresProvider.connectWithSchema(url, schema)
  const client = new Client(provider)
  const session = new pg.Client(url)
  await session.connect()
  await session.query('create extension if not exists pg_stat_statements')
  await session.query(`set search_path to ${schema}, public`)
  let runtime
  const world = {
    client,
    stats: () => provider.stats(),
    sql: async (text, values) => (await session.query(text, values)).rows,
    count: async (table, where = 'true') => (await world.sql(`select count(*)::int as n from ${table} where ${where}`))[0].n,
    /** Starts the runtime with `main` and what else is given. */
    async start(orchestrations, activities = {}, runtimeOptions = {}) {
      runtime = new Runtime(provider, runtimeOptions)
      for (const [key, fn] of Object.entries(activities)) runtime.registerActivity(key, fn)
      runtime.registerOrchestration('other', async () => 'still here')
      for (const [key, fn] of Object.entries(orchestrations)) runtime.registerOrchestration(key, fn)
      await runtime.start()
    },
    async stop() {
      await runtime?.shutdown()
      runtime = undefined
    },
    end: (id) => client.waitForOrchestration(id, LIMIT_MS),
    async until(look, what) {
      const end = Date.now() + LIMIT_MS
      while (!(await look())) {
        if (Date.now() > end) throw new Error(`${what} did not come true`)
        await delay(20)
      }
    },
    /** Beside what the case did, an ordinary instance still runs to its end. */
    async stillRuns() {
      await client.startOrchestration('beside', 'other')
      assert.equal((await world.end('beside')).output, 'still here')
    },
    async close() {
      await world.stop()
      await session.end()
      await provider.close()
    },
  }
  return world
}
