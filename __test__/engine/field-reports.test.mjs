// What went wrong in systems of this kind, replayed here: events and notifications (EV), shutdown and exit (SH). The rows about
// connections, and the rest of the notifications, are in the engine's own tests.

import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import path from 'node:path'
import { describe, test } from 'node:test'

import { Client, PostgresProvider, Runtime } from '../../index.mjs'
import { startProxy } from '../../scripts/chaos/proxy.mjs'
import { dice } from '../support/dice.mjs'
import { gate, liveApp, liveWorld, outputOf, startRuntime, until } from '../support/live.mjs'
import { freshSchema } from '../support/world.mjs'

/** The test database behind a proxy: a URL, and what the network does. */
async function behindProxy(t, url) {
  const folder = decodeURIComponent(/@(%2F[^/:?]*)/i.exec(url)?.[1] ?? '')
  const { hostname, port } = folder === '' ? new URL(url) : {}
  const proxy = await startProxy(folder === '' ? { host: hostname, port: Number(port || 5432) } : { path: path.join(folder, '.s.PGSQL.5432') })
  t.after(() => proxy.stop())
  return { proxy, through: `postgres://postgres@127.0.0.1:${proxy.port}/postgres` }
}

describe('events', { concurrency: 2 }, () => {
  test('EV-01: raised right after the start, before anybody waits, is delivered', async (t) => {
    const app = await liveApp(t, { main: async (ctx) => ctx.waitForEvent('go') })
    const ids = Array.from({ length: 100 }, (_, i) => `order-${i}`)
    await Promise.all(ids.map(async (id) => {
      await app.client.startOrchestration(id, 'main')
      await app.client.raiseEvent(id, 'go', id)
    }))
    for (const id of ids) assert.equal(outputOf(await app.end(id)), id)
  })

  test('EV-03: nobody sleeps while an event is there, whatever comes first', async (t) => {
    const seed = Number(process.env.HOLDFAST_TEST_SEED ?? Date.now() % 1e9)
    t.diagnostic(`HOLDFAST_TEST_SEED=${seed}`)
    const { below, chance } = dice(seed)
    const main = async (ctx, rounds) => {
      for (let i = 0; i < rounds; i++) await ctx.waitForEvent(`round-${i}`)
      return rounds
    }
    const app = await liveApp(t, { main, options: { stickyCacheSize: 2 } })
    const second = new Client(await PostgresProvider.connectWithSchema(app.url, app.schema, { applicationName: `${app.schema}-2` }).then((provider) => {
      t.after(() => provider.close())
      return provider
    }))
    const ids = Array.from({ length: 40 }, (_, i) => `order-${i}`)
    await app.client.startMany(ids.map((id) => ({ orchestration: 'main', id, input: 6 })))
    const messages = ids.flatMap((id) => Array.from({ length: 6 }, (_, i) => [id, `round-${i}`]))
    for (let at = messages.length - 1; at > 0; at--) {
      const other = below(at + 1)
      ;[messages[at], messages[other]] = [messages[other], messages[at]]
    }
    await Promise.all(messages.map(([id, name]) => (chance(0.5) ? app.client : second).raiseEvent(id, name)))
    for (const id of ids) assert.equal(outputOf(await app.end(id)), 6)
  })

  test('EV-06: a wait that ran out has run out, also on replay and when the event comes after all', async (t) => {
    const main = async (ctx) => {
      const first = await ctx.race(ctx.waitForEvent('go'), ctx.scheduleTimer(20))
      await ctx.waitForEvent('end')
      return first.index
    }
    const world = await liveWorld(t)
    const options = { stickyCacheSize: 0 }
    const before = await world.start({ orchestrations: { main }, options })
    await world.client.startOrchestration('one', 'main')
    await until(async () => (await world.kinds('one')).includes('TimerFired'), 'the time is over')
    await before.shutdown(0)
    await world.client.raiseEvent('one', 'go')
    await world.client.raiseEvent('one', 'end')
    await world.start({ orchestrations: { main }, options })
    assert.equal(outputOf(await world.end('one')), 1)
  })

  test('EV-13: large payloads and large batches are no matter for hints', async (t) => {
    const app = await liveApp(t, { main: async (_ctx, text) => text.length })
    const text = 'x'.repeat(1_000_000)
    const big = Array.from({ length: 4 }, (_, i) => ({ orchestration: 'main', id: `big-${i}`, input: text }))
    const many = Array.from({ length: 2000 }, (_, i) => ({ orchestration: 'main', id: `${'long-'.repeat(50)}${i}`, input: 'x' }))
    await app.client.startMany([...big, ...many])
    for (const { id } of big) assert.equal(outputOf(await app.end(id)), text.length)
    await until(async () => (await app.client.getQueueDepths()).orchestratorQueue === 0, 'all have run')
    assert.equal(app.provider.stats().counters.hintsLost, 0)
  })

  test('EV-15: a race of 20 has one winner, however often it is replayed', async (t) => {
    const main = async (ctx) => {
      const { index } = await ctx.race(...Array.from({ length: 20 }, (_, i) => ctx.scheduleActivity('step', i)))
      // Each of these replays the race.
      for (let i = 0; i < 10; i++) assert.equal(await ctx.scheduleActivity('echo', index), index)
      return index
    }
    const activities = { step: async (_ctx, i) => i, echo: async (_ctx, index) => index }
    const app = await liveApp(t, { main, activities, options: { stickyCacheSize: 0 } })
    for (const id of ['a', 'b', 'c']) {
      const winner = outputOf(await app.run(id))
      const asked = await app.data(id, 'ActivityScheduled')
      assert.ok(asked.filter(({ name }) => name === 'echo').every(({ input }) => input === winner || input === JSON.stringify(winner)))
    }
  })
})

describe('shutdown', { concurrency: 2 }, () => {
  test('SH-01: a host goes on while its database is away, and so does the work afterwards', async (t) => {
    const world = await liveWorld(t)
    const { proxy, through } = await behindProxy(t, world.url)
    const provider = await PostgresProvider.connectWithSchema(through, world.schema, { applicationName: `${world.schema}-host` })
    t.after(() => provider.close())
    await startRuntime(t, provider, { orchestrations: { main: async (ctx) => ctx.waitForEvent('go') } })
    const host = createServer((_request, response) => response.end('here'))
    await new Promise((resolve) => host.listen(0, '127.0.0.1', resolve))
    t.after(() => host.close())
    const client = new Client(provider)
    await client.startOrchestration('one', 'main')
    proxy.set('cut')
    await until(() => provider.stats().counters.heartbeatsFailed > 3, 'it is noticed')
    const answer = await fetch(`http://127.0.0.1:${host.address().port}/`)
    assert.equal(await answer.text(), 'here')
    await assert.rejects(client.getStatus('one'), (error) => error.retryable === true)
    proxy.set('pass')
    await world.client.raiseEvent('one', 'go', 'done')
    assert.equal(outputOf(await world.end('one')), 'done')
  })

  test('SH-03: once a runtime has stopped, whatever its handlers do, it asks for nothing more', async (t) => {
    const started = gate()
    const activities = { hangs: () => (started.open(), new Promise(() => {})) }
    // A pool that no other test of this process shares.
    const applicationName = `stopped-${freshSchema()}`
    const app = await liveApp(t, { main: async (ctx) => ctx.scheduleActivity('hangs'), activities, pool: { applicationName } })
    await app.client.startOrchestration('one', 'main')
    await started.promise
    await app.runtime.shutdown(50)
    const counts = () => {
      const { counters, pool } = app.provider.stats()
      return { acquires: pool.acquires, heartbeats: counters.heartbeats, looks: counters.looks, claims: counters.claims }
    }
    const [{ now }] = await app.sql('select clock_timestamp() as now')
    const before = counts()
    await app.sql('select pg_sleep(0.5)')
    assert.deepEqual(counts(), before)
    const asked = 'select query from pg_stat_activity where application_name like $1 and query_start > $2 and pid <> pg_backend_pid()'
    assert.deepEqual(await app.sql(asked, [`${applicationName}%`, now]), [])
  })

  for (const fault of ['blackhole', 'cut']) {
    test(`SH-11: a stop ends in time with the network in state ${fault}`, async (t) => {
      const world = await liveWorld(t)
      const { proxy, through } = await behindProxy(t, world.url)
      const provider = await PostgresProvider.connectWithSchema(through, world.schema, { applicationName: `${world.schema}-stop` })
      const started = gate()
      const activities = { hangs: () => (started.open(), new Promise(() => {})) }
      const runtime = await startRuntime(t, provider, { activities, orchestrations: { main: async (ctx) => ctx.scheduleActivity('hangs') } })
      await Promise.all(Array.from({ length: 30 }, (_, i) => world.client.startOrchestration(`order-${i}`, 'main')))
      await started.promise
      proxy.set(fault)
      const from = performance.now()
      await runtime.shutdown(500)
      const took = performance.now() - from
      // The grace, the goodbye and what a busy machine adds; without a bound it would be the query's 15 s and more.
      assert.ok(took < 10_000, `it took ${took} ms`)
      await provider.close()
    })
  }

  test('SH-11: a stop ends in time while a lock is held on what it would give back', async (t) => {
    const started = gate()
    const activities = { hangs: () => (started.open(), new Promise(() => {})) }
    const app = await liveApp(t, { main: async (ctx) => ctx.scheduleActivity('hangs'), activities })
    await app.client.startOrchestration('one', 'main')
    await started.promise
    await app.sql('begin')
    await app.sql('lock table activity_queue, turn_queue in access exclusive mode')
    const from = performance.now()
    await app.runtime.shutdown(500)
    assert.ok(performance.now() - from < 10_000)
    await app.sql('rollback')
  })

  test('SH-12: a start that failed without its database is no obstacle to the next one', async (t) => {
    const world = await liveWorld(t)
    const { proxy, through } = await behindProxy(t, world.url)
    const provider = await PostgresProvider.connectWithSchema(through, world.schema, { applicationName: `${world.schema}-again` })
    t.after(() => provider.close())
    const orchestrations = { main: async (_ctx, word) => word }
    proxy.set('cut')
    const failed = new Runtime(provider)
    failed.registerOrchestration('main', orchestrations.main)
    await assert.rejects(failed.start(), (error) => error.retryable === true)
    proxy.set('pass')
    await startRuntime(t, provider, { orchestrations })
    await world.client.startOrchestration('one', 'main', 'done')
    assert.equal(outputOf(await world.end('one')), 'done')
    assert.equal((await world.sql('select 1 from node')).length, 1, 'of the failed start nothing is left')
  })
})
