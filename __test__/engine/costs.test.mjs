// What a workflow of three steps costs, in things that are counted and not timed: statements, bytes of WAL, transactions,
// batches that JavaScript pulled. The bounds of what does not hang on the moment stand about a third above what was counted when
// they were written: a change that crosses one has made every workflow dearer. How many items come together in one transaction,
// and whether JavaScript waits at the moment an item is ready, does hang on it: those bounds say what must hold on any machine.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import pg from 'pg'

import { Client, PostgresProvider, Runtime } from '../../index.mjs'
import { startTestServer } from '../../scripts/lib/server.mjs'

const WORKFLOWS = 400

/** Costs for each workflow when `width` of them are under way at a time, on a server that does nothing else. */
async function costs(t, width) {
  const server = await startTestServer()
  t.after(() => server.stop())
  const provider = await PostgresProvider.connect(server.url)
  const client = new Client(provider)
  // No activity is taken for a long one, however slow the machine is.
  const options = { orchestrationConcurrency: 200, workerConcurrency: 400, activityRowDelayMs: 60_000, orchestratorLockTimeoutMs: 300_000 }
  const runtime = new Runtime(provider, options)
  runtime.registerActivity('step', async (_ctx, n) => n + 1)
  runtime.registerOrchestration('main', async (ctx, n) => {
    let last = n
    for (let i = 0; i < 3; i++) last = await ctx.scheduleActivity('step', last)
    return last
  })
  await runtime.start()
  const session = new pg.Client(server.url)
  await session.connect()
  await session.query('create extension pg_stat_statements')

  async function many(name, count) {
    let next = 0
    await Promise.all(Array.from({ length: width }, async () => {
      while (next < count) {
        const id = `${name}-${next++}`
        await client.startOrchestration(id, 'main', 1)
        const { status, output } = await client.waitForOrchestration(id)
        assert.deepEqual([status, output], ['Completed', 4])
      }
    }))
  }
  async function look() {
    const { rows } = await session.query(
      `select sum(calls)::float8 as statements, sum(wal_bytes)::float8 as wal, sum(calls) filter (where query ilike 'commit%')::float8 as transactions
       from pg_stat_statements`)
    const { crossings } = provider.stats().counters
    return { ...rows[0], crossings }
  }

  await many('warm', Math.max(20, width))
  const before = await look()
  await many('run', WORKFLOWS)
  const after = await look()
  await session.end()
  await runtime.shutdown()
  await provider.close()
  const counted = Object.fromEntries(Object.keys(before).map((key) => [key, (after[key] - before[key]) / WORKFLOWS]))
  counted.statementsOfOne = counted.statements / counted.transactions
  t.diagnostic(JSON.stringify(counted))
  return counted
}

function within(counted, bounds) {
  for (const [what, bound] of Object.entries(bounds)) {
    assert.ok(counted[what] > 0, `${what} were counted`)
    assert.ok(counted[what] <= bound, `${what}: ${counted[what].toFixed(2)} for each workflow, at most ${bound}`)
  }
}

test('one workflow at a time', async (t) => {
  // A turn for the start and one for each of three results, three activities: each crosses once at most.
  within(await costs(t, 1), { statements: 42, statementsOfOne: 8.4, wal: 3_350, transactions: 6.7, crossings: 7.1 })
})

test('200 workflows at a time', async (t) => {
  // A tenth of what a workflow costs alone, or less.
  within(await costs(t, 200), { statementsOfOne: 8.5, wal: 3_600, transactions: 0.5, crossings: 0.5 })
})
