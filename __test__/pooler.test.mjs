// The same work through PgBouncer in transaction mode, where a session is nobody's for longer than one transaction.
//
// `npm test` starts the pooler when the machine has one, and says so when it has none.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Client, PostgresProvider, Runtime } from 'holdfast'

const { HOLDFAST_TEST_POOLER_URL: pooler, HOLDFAST_TEST_DATABASE_URL: direct } = process.env

async function connect(schema, pool = {}) {
  return PostgresProvider.connectWithSchema(pooler, schema, { pooled: true, directUrl: direct, maxClients: 8, ...pool })
}

async function work(t, provider) {
  const runtime = new Runtime(provider)
  runtime.registerActivity('double', async (_ctx, value) => value * 2)
  runtime.registerOrchestration('sum', async (ctx, values) => {
    const parts = await Promise.all(values.map((value) => ctx.scheduleActivity('double', value)))
    await ctx.scheduleTimer(5)
    const { by } = await ctx.waitForEvent('go')
    return parts.reduce((sum, part) => sum + part, 0) * by
  })
  await runtime.start()
  t.after(() => runtime.shutdown())
}

if (pooler) {
  test('two runtimes behind a transaction pooler finish everything, once', { timeout: 120_000 }, async (t) => {
    const schema = `pooler_${process.pid}`
    const providers = [await connect(schema), await connect(schema)]
    for (const provider of providers) await work(t, provider)
    const client = new Client(providers[0])
    const ids = Array.from({ length: 60 }, (_, index) => `sum-${index}`)
    await Promise.all(ids.map((id, index) => client.startOrchestration(id, 'sum', [index, 1, 2])))
    await Promise.all(ids.map((id) => client.raiseEvent(id, 'go', { by: 10 })))
    const ends = await Promise.all(ids.map((id) => client.waitForOrchestration(id, 60_000)))
    assert.deepEqual(ends.map(({ status }) => status), ids.map(() => 'Completed'))
    assert.deepEqual(ends.map(({ output }) => output), ids.map((_, index) => (index + 3) * 2 * 10))
    for (const id of ids) {
      const kinds = (await client.readExecutionHistory(id, 1)).map(({ kind }) => kind)
      assert.equal(kinds.filter((kind) => kind === 'ActivityCompleted').length, 3)
    }
  })

  test('CP-16: fifty workers on two sessions never ask for a statement that is not prepared', { timeout: 120_000 }, async (t) => {
    const provider = await connect(`pooler_cp16_${process.pid}`, { maxClients: 2 })
    const runtime = new Runtime(provider, { workerConcurrency: 50, orchestrationConcurrency: 50 })
    const failures = []
    provider.on('warning', ({ message }) => failures.push(message))
    runtime.registerActivity('next', async (_ctx, n) => n + 1)
    runtime.registerOrchestration('count', async (ctx, n) => await ctx.scheduleActivity('next', await ctx.scheduleActivity('next', n)))
    await runtime.start()
    t.after(() => runtime.shutdown())
    const client = new Client(provider)
    const ids = Array.from({ length: 300 }, (_, n) => `cp16-${n}`)
    await Promise.all(ids.map((id, n) => client.startOrchestration(id, 'count', n)))
    const ends = await Promise.all(ids.map((id) => client.waitForOrchestration(id, 60_000)))
    assert.deepEqual(ends.map(({ output }) => output), ids.map((_, n) => n + 2))
    assert.deepEqual(failures.filter((text) => /prepared statement/.test(text)), [])
    assert.equal(provider.stats().counters.commitRefused, 0)
  })
}
