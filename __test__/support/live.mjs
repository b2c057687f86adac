// Runtimes on the real engine and a real database, one schema for each test; everything ends with its test.

import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'

import pg from 'pg'

import { Client, PostgresProvider, Runtime } from '../../index.mjs'
import { databaseUrl, freshSchema } from './world.mjs'

/** Options with which loss and cancellation are seen within 100 ms. */
const QUICK = { heartbeatIntervalMs: 100, staleAfterMs: 2000 }

/** How long a test waits for anything before it fails: a bound for what hangs, not for a busy machine. */
const LIMIT_MS = 60_000

/** Waits until `look` gives something true, and gives that. */
export async function until(look, what = 'the condition') {
  const end = Date.now() + LIMIT_MS
  for (;;) {
    const found = await look()
    if (found) return found
    if (Date.now() > end) throw new Error(`${what} did not come true within ${LIMIT_MS} ms`)
    await delay(10)
  }
}

/** Registers what is given and starts. */
export async function startRuntime(t, provider, { activities = {}, orchestrations = {}, options = {} }) {
  const runtime = new Runtime(provider, { ...QUICK, ...options })
  for (const [name, fn] of Object.entries(activities)) runtime.registerActivity(name, fn)
  for (const [name, fn] of Object.entries(orchestrations)) runtime.registerOrchestration(name, fn)
  await runtime.start()
  t.after(() => runtime.shutdown(0))
  return runtime
}

/** A schema of its own with a client; `start` runs a runtime on it, `sql` asks the database itself. */
export async function liveWorld(t, { schema = freshSchema(), pool } = {}) {
  const url = databaseUrl()
  const provider = await PostgresProvider.connectWithSchema(url, schema, { connectTimeoutMs: LIMIT_MS, ...pool })
  t.after(() => provider.close())
  const client = new Client(provider)
  const session = new pg.Client(url)
  await session.connect()
  t.after(() => session.end())
  await session.query(`set search_path to ${pg.escapeIdentifier(schema)}`)
  const world = {
    url,
    schema,
    provider,
    client,
    sql: async (text, values) => (await session.query(text, values)).rows,
    start: (handlers) => startRuntime(t, provider, handlers),
    end: (id) => client.waitForOrchestration(id, LIMIT_MS),
    /** Kinds of the events of one execution. */
    kinds: async (id, execution = 1) => (await client.readExecutionHistory(id, execution)).map((event) => event.kind),
    /** The data of all events of one kind, parsed. */
    data: async (id, kind, execution = 1) =>
      (await client.readExecutionHistory(id, execution)).filter((event) => event.kind === kind).map((event) => JSON.parse(event.data)),
    /** Number of rows of each table; a refused call leaves all of them as they were. */
    async rows() {
      const counts = {}
      for (const table of ['instance', 'execution', 'history', 'turn_queue', 'inbox', 'activity_queue', 'ended_activity', 'kv']) {
        const [{ n }] = await world.sql(`select count(*)::int as n from ${table}`)
        counts[table] = n
      }
      return counts
    },
    /** Starts `main` under an id and gives its result. */
    async run(id, input) {
      await client.startOrchestration(id, 'main', input)
      return await world.end(id)
    },
  }
  return world
}

/** A world with one runtime; `main` is the orchestration under test. */
export async function liveApp(t, { main, activities, orchestrations = {}, options, ...rest }) {
  const world = await liveWorld(t, rest)
  const all = main === undefined ? orchestrations : { ...orchestrations, main }
  const runtime = await world.start({ activities, orchestrations: all, options })
  return { ...world, runtime }
}

/** The output of a completed instance; the error of any other is the assertion's message. */
export function outputOf(end) {
  assert.equal(end.status, 'Completed', end.error)
  return end.output
}

/** A promise with its ends outside. */
export function gate() {
  const parts = {}
  parts.promise = new Promise((resolve, reject) => Object.assign(parts, { open: resolve, fail: reject }))
  return parts
}
