// Local steps on the real engine: no queue row, one commit, replays on other nodes, a crash before the commit.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { liveApp, liveWorld, outputOf, until } from '../support/live.mjs'

test('a step leaves its events in history, takes no queue row, and is not run by replays', async (t) => {
  const world = await liveWorld(t)
  let runs = 0
  const main = async (ctx) => {
    const before = ctx.utcNow()
    const made = await ctx.step('make', ({ attempt, name }) => ({ attempt, name, run: ++runs }))
    const parts = await ctx.all([ctx.step('a', () => 1), ctx.scheduleActivity('double', 4), ctx.step('b', () => Promise.reject(new Error('b broke')))])
    await ctx.scheduleTimer(5)
    return [made, parts, ctx.utcNow() >= before]
  }
  await world.start({ activities: { double: (ctx, n) => 2 * n }, orchestrations: { main }, options: { stickyCacheSize: 0 } })
  const end = outputOf(await world.run('one'))
  assert.deepEqual(end, [{ attempt: 1, name: 'make', run: 1 }, [{ ok: 1 }, { ok: 8 }, { err: 'b broke' }], true])
  assert.equal(runs, 1)
  assert.deepEqual((await world.kinds('one')).slice(0, 8), [
    'OrchestrationStarted',
    'ActivityScheduled',
    'ActivityCompleted',
    'ActivityScheduled',
    'ActivityScheduled',
    'ActivityScheduled',
    'ActivityCompleted',
    'ActivityFailed',
  ])
  const scheduled = (await world.sql("select data from history where kind = 'ActivityScheduled' order by event_id")).map(({ data }) => JSON.parse(data))
  assert.deepEqual(scheduled.map(({ name, local }) => [name, local ?? false]), [['make', true], ['a', true], ['double', false], ['b', true]])
})

test('a long step keeps its lease and holds up nobody else', async (t) => {
  let release
  const gate = new Promise((resolve) => (release = resolve))
  let runs = 0
  const app = await liveApp(t, {
    options: { orchestratorLockTimeoutMs: 300 },
    main: async (ctx, input) => (input === 'long' ? await ctx.step('long', () => (runs++, gate)) : 'quick'),
  })
  await app.client.startOrchestration('long', 'main', 'long')
  for (let i = 0; i < 20; i++) assert.equal(outputOf(await app.run(`quick-${i}`)), 'quick')
  await new Promise((resolve) => setTimeout(resolve, 1000))
  release('done')
  assert.equal(outputOf(await app.end('long')), 'done')
  assert.equal(runs, 1)
})

test('a cancel reaches a step that never ends, and frees its slot', async (t) => {
  let reason
  let runs = 0
  const app = await liveApp(t, {
    options: { orchestrationConcurrency: 1, heartbeatIntervalMs: 200, staleAfterMs: 2000 },
    main: async (ctx, input) => {
      if (input === 'quick') return 'quick'
      await ctx.step('never', ({ signal }) => {
        runs += 1
        return new Promise(() => signal.addEventListener('abort', () => (reason = signal.reason.code)))
      })
    },
  })
  await app.client.startOrchestration('stuck', 'main')
  await until(() => runs === 1, 'the step runs')
  await app.client.cancelInstance('stuck', 'enough')
  const { status, error } = await app.end('stuck')
  assert.deepEqual([status, error], ['Failed', 'canceled: enough'])
  assert.deepEqual([reason, runs], ['CANCELLED', 1])
  assert.equal(outputOf(await app.run('next', 'quick')), 'quick')
})

test('a step whose turn was lost runs again, and its result is recorded once', async (t) => {
  const world = await liveWorld(t)
  let runs = 0
  let begun
  const first = new Promise((resolve) => (begun = resolve))
  const main = async (ctx) => {
    await ctx.scheduleTimer(1)
    return await ctx.step('once', () => {
      runs += 1
      begun()
      return runs === 1 ? new Promise(() => {}) : 'second run'
    })
  }
  const lost = await world.start({ orchestrations: { main } })
  await world.client.startOrchestration('one', 'main')
  await first
  await lost.shutdown(0)
  await world.start({ orchestrations: { main } })
  assert.equal(outputOf(await world.end('one')), 'second run')
  assert.equal((await world.kinds('one')).filter((kind) => kind === 'ActivityCompleted').length, 1)
})

test('a cancellation that was accepted while the last turn ran wins over its completion', async (t) => {
  const world = await liveWorld(t)
  const seen = []
  const main = async (ctx) => {
    try {
      // The turn that would complete is on its way when the request is stored.
      await ctx.step('cancel myself', async () => seen.push(await world.client.cancelInstance('one', 'just in time')))
      return 'completed'
    } catch (error) {
      seen.push(error.message)
      throw error
    }
  }
  await world.start({ orchestrations: { main } })
  const { status, error } = await world.run('one')
  assert.deepEqual([status, error], ['Failed', 'canceled: just in time'])
  assert.deepEqual(seen, [{ accepted: true }, 'canceled: just in time'])
  assert.deepEqual(await world.kinds('one'), ['OrchestrationStarted', 'ActivityScheduled', 'OrchestrationCancelRequested', 'ActivityCancelRequested', 'OrchestrationFailed'])
  assert.deepEqual(await world.client.cancelInstance('one', 'too late'), { accepted: false })
  assert.equal(world.provider.stats().counters.leasesLost, 0, 'the lease was given up, not lost')
})

test('a cancellation behind more messages than one turn reads wins as well', async (t) => {
  const world = await liveWorld(t)
  await world.client.startOrchestration('one', 'main', null)
  await Promise.all(Array.from({ length: 1000 }, (_, i) => world.client.raiseEvent('one', 'noise', i)))
  assert.deepEqual(await world.client.cancelInstance('one', 'last of all'), { accepted: true })
  await world.start({ orchestrations: { main: async () => 'completed' } })
  const { status, error } = await world.end('one')
  assert.deepEqual([status, error], ['Failed', 'canceled: last of all'])
})
