// Timers, events, queues and continue-as-new through the public API on the real engine.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { defineEvent } from '../../index.mjs'
import { liveApp, liveWorld, outputOf, until } from '../support/live.mjs'

const waits = async (world, id, kind, count = 1) =>
  await until(async () => (await world.kinds(id)).filter((each) => each === kind).length >= count, `${count} ${kind} of ${id}`)

describe('a timer', { concurrency: 4 }, () => {
  test('fires not before its time by the database clock, and exactly once', async (t) => {
    const app = await liveApp(t, {
      async main(ctx) {
        const from = ctx.utcNow()
        const value = await ctx.scheduleTimer(300)
        return { value, took: ctx.utcNow() - from }
      },
    })
    const { value, took } = outputOf(await app.run('one'))
    assert.equal(value, null)
    assert.ok(took >= 300, `it took ${took} ms`)
    const history = await app.client.readExecutionHistory('one', 1)
    const created = history.find((event) => event.kind === 'TimerCreated')
    const fired = history.filter((event) => event.kind === 'TimerFired')
    assert.equal(fired.length, 1)
    assert.equal(fired[0].sourceEventId, created.eventId)
    assert.ok(fired[0].timestampMs >= JSON.parse(created.data).fireAtMs)
  })

  test('of no time at all fires', async (t) => {
    const app = await liveApp(t, { main: async (ctx) => await ctx.scheduleTimer(0) })
    assert.equal(outputOf(await app.run('one')), null)
  })

  test('of more than 2^31 ms is stored with its due time, and cancelled by the race that it loses', async (t) => {
    const century = 100 * 365 * 86_400_000
    const app = await liveApp(t, {
      main: async (ctx) => await ctx.race(ctx.scheduleTimer(2 ** 31 + 1000), ctx.scheduleTimer(century), ctx.waitForEvent('go')),
    })
    await app.client.startOrchestration('one', 'main')
    await waits(app, 'one', 'ExternalSubscribed')
    const [started] = await app.client.readExecutionHistory('one', 1)
    const due = await app.sql('select floor(extract(epoch from due_at) * 1000)::bigint::text as at from inbox order by due_at')
    assert.deepEqual(due.map(({ at }) => Number(at) - started.timestampMs), [2 ** 31 + 1000, century])
    await app.client.raiseEvent('one', 'go', 1)
    assert.deepEqual(outputOf(await app.end('one')), { index: 2, value: 1 })
    assert.deepEqual(await app.sql('select * from inbox'), [])
  })

  test('survives the runtime that set it', async (t) => {
    const world = await liveWorld(t)
    const orchestrations = { main: async (ctx) => [await ctx.scheduleTimer(400), ctx.isReplaying] }
    const first = await world.start({ orchestrations })
    await world.client.startOrchestration('one', 'main')
    await waits(world, 'one', 'TimerCreated')
    await first.shutdown(1000)
    await world.start({ orchestrations })
    assert.deepEqual(outputOf(await world.end('one')), [null, false])
  })
})

describe('an event', { concurrency: 4 }, () => {
  test('raised before the wait is taken at once; raised later it ends the wait', async (t) => {
    const app = await liveApp(t, {
      async main(ctx) {
        const early = await ctx.waitForEvent('early')
        const late = await ctx.waitForEvent('late')
        return [early, late]
      },
    })
    assert.deepEqual(await app.client.raiseEvent('one', 'early', { n: 1 }), { accepted: true })
    await app.client.startOrchestration('one', 'main')
    await waits(app, 'one', 'ExternalSubscribed', 2)
    await app.client.raiseEvent('one', 'late', 'two')
    assert.deepEqual(outputOf(await app.end('one')), [{ n: 1 }, 'two'])
  })

  test('goes to one wait of its name, in order; other names do not mix', async (t) => {
    const approved = defineEvent('approved')
    const app = await liveApp(t, {
      async main(ctx) {
        const [a, b, c] = await Promise.all([ctx.waitForEvent(approved), ctx.waitForEvent('other'), ctx.waitForEvent('approved')])
        return { a, b, c }
      },
    })
    await app.client.startOrchestration('one', 'main')
    await app.client.raiseEvent('one', approved, 1)
    await app.client.raiseEvent('one', 'approved', 2)
    await app.client.raiseEvent('one', 'other', 3)
    assert.deepEqual(outputOf(await app.end('one')), { a: 1, b: 3, c: 2 })
  })

  test('together with its time limit is delivered or kept, never lost', async (t) => {
    const app = await liveApp(t, {
      async main(ctx) {
        const first = await ctx.race(ctx.waitForEvent('go'), ctx.scheduleTimer(30))
        return first.index === 0 ? first.value : await ctx.waitForEvent('go')
      },
    })
    const ids = Array.from({ length: 20 }, (_, n) => `race-${n}`)
    for (const id of ids) await app.client.startOrchestration(id, 'main')
    await Promise.all(ids.map((id) => app.client.raiseEvent(id, 'go', id)))
    for (const id of ids) assert.equal(outputOf(await app.end(id)), id)
  })

  test('to an ended instance is not accepted, and nothing is stored', async (t) => {
    const app = await liveApp(t, { main: async () => 'over' })
    outputOf(await app.run('one'))
    assert.deepEqual(await app.client.raiseEvent('one', 'go', 1), { accepted: false })
    assert.deepEqual(await app.client.enqueueEvent('one', 'go', 1), { accepted: false })
    assert.deepEqual(await app.sql('select * from inbox'), [])
  })
})

describe('a queue', { concurrency: 4 }, () => {
  test('gives its messages in order, also those from before the start', async (t) => {
    const app = await liveApp(t, {
      async main(ctx) {
        const seen = []
        for (;;) {
          const message = await ctx.dequeueEvent('work')
          if (message === 'end') return seen
          seen.push(message)
        }
      },
    })
    for (const n of [0, 1, 2]) await app.client.enqueueEvent('one', 'work', n)
    await app.client.startOrchestration('one', 'main')
    for (const n of [3, 4, 5]) await app.client.enqueueEvent('one', 'work', n)
    await app.client.enqueueEvent('one', 'work', 'end')
    assert.deepEqual(outputOf(await app.end('one')), [0, 1, 2, 3, 4, 5])
  })

  test('of 1 500 messages, more than one turn takes, comes whole and in the order in which they were stored', async (t) => {
    const app = await liveApp(t, {
      *main(ctx) {
        const seen = []
        for (let n = 0; n < 1500; n++) seen.push(yield ctx.dequeueEvent('work'))
        return seen
      },
    })
    await Promise.all(Array.from({ length: 1500 }, (_, n) => app.client.enqueueEvent('one', 'work', n)))
    const stored = await app.sql('select data from inbox order by id')
    await app.client.startOrchestration('one', 'main')
    assert.deepEqual(outputOf(await app.end('one')), stored.map(({ data }) => JSON.parse(data)))
    assert.equal(new Set(stored.map(({ data }) => data)).size, 1500)
  })

  test('read by a loser of a race keeps its message', async (t) => {
    const app = await liveApp(t, {
      async main(ctx) {
        const { index } = await ctx.race(ctx.scheduleTimer(20), ctx.dequeueEvent('work'))
        await ctx.waitForEvent('sent')
        return [index, await ctx.dequeueEvent('work')]
      },
    })
    await app.client.startOrchestration('one', 'main')
    await waits(app, 'one', 'QueueSubscriptionCancelled')
    await app.client.enqueueEvent('one', 'work', 'kept')
    await app.client.raiseEvent('one', 'sent')
    assert.deepEqual(outputOf(await app.end('one')), [0, 'kept'])
  })
})

describe('continue as new', { concurrency: 4 }, () => {
  for (const stickyCacheSize of [1000, 0]) {
    test(`starts the next execution with an empty history and the messages that were not read (${stickyCacheSize} kept)`, async (t) => {
      const app = await liveApp(t, {
        options: { stickyCacheSize },
        async main(ctx, { round, seen }) {
          const next = [...seen, await ctx.dequeueEvent('work')]
          if (round < 4) return await ctx.continueAsNew({ round: round + 1, seen: next })
          return { seen: next, event: await ctx.waitForEvent('early'), execution: ctx.executionId }
        },
      })
      await app.client.raiseEvent('one', 'early', 'kept')
      for (const n of [1, 2, 3]) await app.client.enqueueEvent('one', 'work', n)
      await app.client.startOrchestration('one', 'main', { round: 1, seen: [] })
      await app.client.enqueueEvent('one', 'work', 4)
      assert.deepEqual(outputOf(await app.end('one')), { seen: [1, 2, 3, 4], event: 'kept', execution: 4 })
      assert.deepEqual(await app.client.listExecutions('one'), [1, 2, 3, 4])
      assert.equal((await app.kinds('one', 1)).at(-1), 'OrchestrationContinuedAsNew')
      assert.equal((await app.kinds('one', 4)).at(-1), 'OrchestrationCompleted')
    })
  }

  test('drops the timers and activities of the execution that it ends', async (t) => {
    const app = await liveApp(t, {
      activities: { never: () => new Promise(() => {}) },
      *main(ctx, round) {
        if (round === 2) return yield ctx.waitForEvent('go')
        const open = ctx.race(ctx.scheduleTimer(3_600_000), ctx.scheduleActivity('never'), ctx.waitForEvent('next'))
        yield open
        return yield ctx.continueAsNew(2)
      },
      options: { activityCancellationGracePeriodMs: 100 },
    })
    await app.client.startOrchestration('one', 'main', 1)
    await app.client.raiseEvent('one', 'next')
    await until(async () => (await app.client.getInstanceInfo('one')).currentExecutionId === 2, 'the second execution')
    assert.deepEqual(await app.sql('select * from activity_queue'), [])
    await app.client.raiseEvent('one', 'go', 'done')
    assert.equal(outputOf(await app.end('one')), 'done')
    assert.deepEqual(await app.sql('select * from inbox'), [])
  })

  test('keeps the custom status', async (t) => {
    const app = await liveApp(t, {
      async main(ctx, round) {
        if (round === 2) return ctx.getCustomStatus()
        ctx.setCustomStatus('half way')
        return await ctx.continueAsNew(2)
      },
    })
    const end = await app.run('one', 1)
    assert.equal(outputOf(end), 'half way')
    assert.equal(end.customStatus, 'half way')
  })
})
