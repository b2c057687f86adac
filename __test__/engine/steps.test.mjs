// Steps in every wiring, through the public API on the real engine. Each wiring is written as generator and as async
// function and runs with live executions kept, with one kept, and with none: all must leave the same history.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { liveApp, liveWorld, outputOf, until } from '../support/live.mjs'

const activities = {
  add: async (_ctx, [a, b]) => a + b,
  fail: async (_ctx, text) => {
    throw new Error(text)
  },
  never: (ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))),
}
const orchestrations = {
  child: async (ctx, n) => n * (await ctx.scheduleActivity('add', [n, 1])),
}

/** What a history says, without ids, times, and the order in which things side by side happened to finish. */
function stepsOf(id, history) {
  return history
    .map(({ kind, sourceEventId, data }) => ({ kind, sourceEventId, data: kind.startsWith('Timer') ? undefined : plain(id, data) }))
    .toSorted((a, b) => (a.sourceEventId ?? 0) - (b.sourceEventId ?? 0))
}

/** Data without stacks, which name places in the code. */
function plain(id, data) {
  return data?.replaceAll(/"stack":"(?:[^"\\]|\\.)*",?/g, '').replaceAll(id, 'ID')
}

const CACHES = [1000, 1, 0]

/** Runs both forms under each cache size, side by side; gives the one outcome and history that all of them agree on. */
async function same(t, forms, input) {
  const world = await liveWorld(t)
  const ids = []
  for (const stickyCacheSize of CACHES) {
    const mains = Object.entries(forms).map(([form, main]) => [`${form}-with-${stickyCacheSize}`, main])
    await world.start({ activities, orchestrations: { ...orchestrations, ...Object.fromEntries(mains) }, options: { stickyCacheSize } })
    ids.push(...mains.map(([name]) => name))
  }
  await Promise.all(ids.map((id) => world.client.startOrchestration(id, id, input)))
  const runs = []
  for (const id of ids) {
    const { status, output, error } = await world.end(id)
    const history = await world.client.readExecutionHistory(id, 1)
    const steps = stepsOf(id, history)
    runs.push({ outcome: { status, output, error: error?.split('\n')[0], steps }, kinds: history.map((event) => event.kind) })
  }
  for (const { outcome } of runs) assert.deepEqual(outcome, runs[0].outcome)
  // Nothing is left behind by an instance that has ended.
  await until(async () => {
    const { turn_queue: turns, inbox, activity_queue: queued } = await world.rows()
    return turns + inbox + queued === 0
  }, 'the queues are empty')
  return { ...runs[0].outcome, kinds: runs[0].kinds }
}

describe('steps', () => {
  test('one after the other give each result to the next', async (t) => {
    const { output, kinds } = await same(t, {
      *generator(ctx, n) {
        const a = yield ctx.scheduleActivity('add', [n, 1])
        const b = yield ctx.scheduleActivity('add', [a, 10])
        return yield* ctx.scheduleActivity('add', [b, 100])
      },
      async asynchronous(ctx, n) {
        const a = await ctx.scheduleActivity('add', [n, 1])
        const b = await ctx.scheduleActivity('add', [a, 10])
        return await ctx.scheduleActivity('add', [b, 100])
      },
    }, 5)
    assert.equal(output, 116)
    const step = ['ActivityScheduled', 'ActivityCompleted']
    assert.deepEqual(kinds, ['OrchestrationStarted', ...step, ...step, ...step, 'OrchestrationCompleted'])
  })

  test('in all give { ok } or { err } for each, in argument order', async (t) => {
    const body = (ctx) => ctx.all([ctx.scheduleTimer(60), ctx.scheduleActivity('fail', 'no'), 7])
    const { output } = await same(t, {
      *generator(ctx) {
        return yield body(ctx)
      },
      async asynchronous(ctx) {
        return await body(ctx)
      },
    })
    assert.deepEqual(output, [{ ok: null }, { err: 'no' }, { ok: 7 }])
  })

  test('nested in all and race give nested results', async (t) => {
    const body = (ctx) =>
      ctx.all([
        ctx.race(ctx.scheduleTimer(30), ctx.scheduleTimer(3_600_000)),
        ctx.all([ctx.race(ctx.waitForEvent('never'), ctx.scheduleTimer(80))]),
      ])
    const { output, kinds } = await same(t, {
      *generator(ctx) {
        return yield body(ctx)
      },
      async asynchronous(ctx) {
        return await body(ctx)
      },
    })
    assert.deepEqual(output, [{ ok: { index: 0, value: null } }, { ok: [{ ok: { index: 1, value: null } }] }])
    assert.equal(kinds.filter((kind) => kind === 'TimerCancelled').length, 1)
    assert.equal(kinds.filter((kind) => kind === 'ExternalSubscribedCancelled').length, 1)
  })

  test('that fail throw at the step, and code may go on', async (t) => {
    const { output } = await same(t, {
      *generator(ctx) {
        try {
          yield ctx.scheduleActivity('fail', 'first')
        } catch (error) {
          return [error.message, yield ctx.scheduleActivity('add', [1, 1])]
        }
      },
      async asynchronous(ctx) {
        try {
          await ctx.scheduleActivity('fail', 'first')
        } catch (error) {
          return [error.message, await ctx.scheduleActivity('add', [1, 1])]
        }
      },
    })
    assert.deepEqual(output, ['first', 2])
  })

  test('that call a child give its output', async (t) => {
    const { output, kinds } = await same(t, {
      *generator(ctx, n) {
        return yield ctx.scheduleSubOrchestration('child', n)
      },
      async asynchronous(ctx, n) {
        return await ctx.scheduleSubOrchestration('child', n)
      },
    }, 6)
    assert.equal(output, 42)
    assert.deepEqual(kinds, ['OrchestrationStarted', 'SubOrchestrationScheduled', 'SubOrchestrationCompleted', 'OrchestrationCompleted'])
  })

  test('whose error nobody catches fail the orchestration with the text of that error', async (t) => {
    const { status, error } = await same(t, {
      *generator(ctx) {
        yield ctx.scheduleActivity('fail', 'the disk is full')
      },
      async asynchronous(ctx) {
        await ctx.scheduleActivity('fail', 'the disk is full')
      },
    })
    assert.equal(status, 'Failed')
    assert.match(error, /the disk is full/)
  })

  test('take time and chance from the context, the same in every replay', async (t) => {
    const app = await liveApp(t, {
      activities,
      options: { stickyCacheSize: 0 },
      async main(ctx) {
        const before = [ctx.utcNow(), ctx.newGuid(), ctx.random()]
        await ctx.scheduleActivity('add', [1, 1])
        await ctx.scheduleActivity('add', before.slice(0, 1).concat(1))
        return before
      },
    })
    const [now, guid, chance] = outputOf(await app.run('one'))
    const [started] = await app.client.readExecutionHistory('one', 1)
    assert.equal(now, started.timestampMs)
    assert.match(guid, /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/)
    assert.ok(chance >= 0 && chance < 1)
    assert.deepEqual(await app.data('one', 'ActivityScheduled'), [{ name: 'add', input: [1, 1] }, { name: 'add', input: [now, 1] }])
  })
})

describe('a race', () => {
  test('takes the losers back: the activity leaves the queue, the timer is no longer due', async (t) => {
    const { output } = await same(t, {
      *generator(ctx) {
        const first = yield ctx.race(ctx.scheduleTimer(30), ctx.scheduleActivity('never'), ctx.scheduleTimer(3_600_000))
        return first
      },
      async asynchronous(ctx) {
        return await ctx.race(ctx.scheduleTimer(30), ctx.scheduleActivity('never'), ctx.scheduleTimer(3_600_000))
      },
    })
    assert.deepEqual(output, { index: 0, value: null })
  })

  test('takes the losers back while the instance goes on', async (t) => {
    let aborted = 0
    const app = await liveApp(t, {
      activities: {
        never: (ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason, (aborted += 1)))),
      },
      async main(ctx) {
        await ctx.race(ctx.scheduleTimer(50), ctx.scheduleActivity('never'), ctx.scheduleTimer(3_600_000))
        return await ctx.waitForEvent('go')
      },
    })
    await app.client.startOrchestration('one', 'main')
    await until(async () => (await app.kinds('one')).includes('ActivityCancelRequested'), 'the race is over')
    assert.deepEqual(await app.sql('select * from activity_queue'), [])
    assert.deepEqual(await app.sql('select * from inbox'), [])
    await until(() => aborted === 1, 'the running loser was told to stop')
    await app.client.raiseEvent('one', 'go', 'on')
    assert.equal(outputOf(await app.end('one')), 'on')
  })

  test('won by a failure says which part and why', async (t) => {
    const app = await liveApp(t, {
      activities,
      main: async (ctx) => await ctx.race(ctx.waitForEvent('never'), ctx.scheduleActivity('fail', 'broken')),
    })
    assert.deepEqual(outputOf(await app.run('one')), { index: 1, value: 'broken', error: true })
  })
})

describe('promises of tasks', () => {
  test('in Promise.all, Promise.race and Promise.allSettled behave as promises do', async (t) => {
    const app = await liveApp(t, {
      activities,
      options: { stickyCacheSize: 0 },
      async main(ctx) {
        const all = await Promise.all([1, 2, 3].map((n) => ctx.scheduleActivity('add', [n, n])))
        const first = await Promise.race([ctx.scheduleTimer(3_600_000), ctx.scheduleActivity('add', [20, 1])])
        const settled = await Promise.allSettled([ctx.scheduleActivity('fail', 'x'), ctx.scheduleActivity('add', [0, 0])])
        return { all, first, settled: settled.map(({ status, value, reason }) => [status, value ?? reason.message]) }
      },
    })
    assert.deepEqual(outputOf(await app.run('one')), {
      all: [2, 4, 6],
      first: 21,
      settled: [['rejected', 'x'], ['fulfilled', 0]],
    })
  })

  test('that branch run side by side in async helper functions', async (t) => {
    const app = await liveApp(t, {
      activities,
      options: { stickyCacheSize: 0 },
      async main(ctx) {
        const branch = async (n) => {
          const a = await ctx.scheduleActivity('add', [n, 1])
          await ctx.scheduleTimer(10)
          return await ctx.scheduleActivity('add', [a, 1])
        }
        return await Promise.all([branch(0), branch(10), branch(20)])
      },
    })
    assert.deepEqual(outputOf(await app.run('one')), [2, 12, 22])
  })

  test('a fan-out of 200 activities comes back whole and in order', async (t) => {
    const app = await liveApp(t, {
      activities,
      *main(ctx) {
        const parts = yield ctx.all(Array.from({ length: 200 }, (_, n) => ctx.scheduleActivity('add', [n, 1])))
        return parts.map((part) => part.ok)
      },
    })
    assert.deepEqual(outputOf(await app.run('one')), Array.from({ length: 200 }, (_, n) => n + 1))
  })
})
