// Rules "all and race" and "Retries".
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gate, liveApp, outputOf, until } from '../support/live.mjs'

const echo = async (_ctx, input) => input
const fail = async (_ctx, text) => {
  throw new Error(text ?? 'failed')
}
const untilAborted = async (ctx) => await new Promise((resolve) => ctx.signal.addEventListener('abort', () => resolve('aborted')))

describe('all', () => {
  test('gives { ok } or { err } in argument order and never throws', async (t) => {
    const app = await liveApp(t, {
      activities: { echo, fail },
      orchestrations: { child: async (_ctx, n) => n, sad: async () => fail(null, 'sad child') },
      *main(ctx) {
        const parts = yield ctx.all([
          ctx.scheduleActivity('echo', { a: 1 }),
          ctx.scheduleActivity('fail', 'broken part'),
          ctx.scheduleTimer(5),
          ctx.scheduleSubOrchestration('child', 7),
          ctx.scheduleSubOrchestration('sad'),
          ctx.waitForEvent('e'),
          ctx.dequeueEvent('q'),
        ])
        return parts.map((part) => ('ok' in part ? { ok: part.ok } : { err: typeof part.err, says: /broken part|sad child/.test(part.err) }))
      },
    })
    await app.client.startOrchestration('a', 'main')
    await app.client.raiseEvent('a', 'e', 'event')
    await app.client.enqueueEvent('a', 'q', { m: 1 })
    assert.deepEqual(outputOf(await app.end('a')), [
      { ok: { a: 1 } },
      { err: 'string', says: true },
      { ok: null },
      { ok: 7 },
      { err: 'string', says: true },
      { ok: 'event' },
      { ok: { m: 1 } },
    ])
  })

  test('of nothing gives an empty array at once', async (t) => {
    const app = await liveApp(t, {
      *main(ctx) {
        return yield ctx.all([])
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), [])
  })

  test('schedules all parts in argument order in the same turn', async (t) => {
    const app = await liveApp(t, {
      activities: { echo },
      *main(ctx) {
        return (yield ctx.all([3, 1, 2].map((n) => ctx.scheduleActivity('echo', n)))).map(({ ok }) => ok)
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), [3, 1, 2])
    assert.deepEqual((await app.data('a', 'ActivityScheduled')).map(({ input }) => input), [3, 1, 2])
    assert.deepEqual((await app.kinds('a')).slice(0, 4), ['OrchestrationStarted', 'ActivityScheduled', 'ActivityScheduled', 'ActivityScheduled'])
  })
})

describe('race', () => {
  test('gives { index, value } of the part that was first', async (t) => {
    const app = await liveApp(t, {
      activities: { echo, untilAborted },
      *main(ctx) {
        const first = yield ctx.race(ctx.scheduleActivity('echo', 'quick'), ctx.scheduleTimer(60_000))
        const second = yield ctx.race(ctx.scheduleActivity('untilAborted'), ctx.scheduleTimer(5))
        const third = yield ctx.race(ctx.waitForEvent('e'), ctx.scheduleTimer(60_000))
        return [first, second, third]
      },
    })
    await app.client.startOrchestration('a', 'main')
    await app.client.raiseEvent('a', 'e', { n: 1 })
    assert.deepEqual(outputOf(await app.end('a')), [
      { index: 0, value: 'quick' },
      { index: 1, value: null },
      { index: 0, value: { n: 1 } },
    ])
  })

  test('counts a failing part as finished; the value is its text', async (t) => {
    const app = await liveApp(t, {
      activities: { fail },
      *main(ctx) {
        const { index, value } = yield ctx.race(ctx.scheduleActivity('fail', 'lost at once'), ctx.scheduleTimer(60_000))
        return [index, typeof value, value.includes('lost at once')]
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), [0, 'string', true])
  })

  test('with both ready takes the earlier completion', async (t) => {
    const app = await liveApp(t, {
      options: { stickyCacheSize: 0 },
      *main(ctx) {
        return yield ctx.race(ctx.waitForEvent('b'), ctx.waitForEvent('a'))
      },
    })
    await app.client.startOrchestration('i', 'main')
    await app.client.raiseEvent('i', 'a', 'came first')
    await app.client.raiseEvent('i', 'b', 'came second')
    assert.deepEqual(outputOf(await app.end('i')), { index: 1, value: 'came first' })
  })

  test('of three or more, and nested, works', async (t) => {
    const app = await liveApp(t, {
      activities: { echo },
      *main(ctx) {
        const never = () => ctx.scheduleTimer(3_600_000)
        const three = yield ctx.race(never(), never(), ctx.scheduleActivity('echo', 3))
        const nested = yield ctx.race(never(), ctx.all([ctx.scheduleActivity('echo', 1), ctx.scheduleActivity('echo', 2)]))
        const inside = yield ctx.all([ctx.race(ctx.scheduleActivity('echo', 4), never()), ctx.newGuid(), ctx.utcNow()])
        return [three, nested, inside[0], typeof inside[1].ok, typeof inside[2].ok]
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), [
      { index: 2, value: 3 },
      { index: 1, value: [{ ok: 1 }, { ok: 2 }] },
      { ok: { index: 0, value: 4 } },
      'string',
      'number',
    ])
  })

  test('cancels a losing child and leaves a message for a losing queue wait', async (t) => {
    const app = await liveApp(t, {
      orchestrations: { child: async (ctx) => await ctx.waitForEvent('never') },
      *main(ctx) {
        yield ctx.race(ctx.scheduleSubOrchestrationWithId('child', 'lost-child'), ctx.waitForEvent('go'))
        yield ctx.race(ctx.dequeueEvent('q'), ctx.waitForEvent('go'))
        yield ctx.waitForEvent('go')
        return yield ctx.dequeueEvent('q')
      },
    })
    await app.client.startOrchestration('a', 'main')
    await until(async () => (await app.client.getStatus('lost-child')).status === 'Running')
    await app.client.raiseEvent('a', 'go')
    const lost = await app.end('lost-child')
    assert.equal(lost.status, 'Failed')
    assert.match(lost.error, /^canceled: /)
    await app.client.raiseEvent('a', 'go')
    await app.client.enqueueEvent('a', 'q', 'kept')
    await app.client.raiseEvent('a', 'go')
    assert.equal(outputOf(await app.end('a')), 'kept')
  })

  test('a wait that lost its race does not swallow a later event', async (t) => {
    const app = await liveApp(t, {
      *main(ctx) {
        const first = yield ctx.race(ctx.waitForEvent('e'), ctx.scheduleTimer(5))
        const second = yield ctx.waitForEvent('e')
        return [first.index, second]
      },
    })
    await app.client.startOrchestration('a', 'main')
    await until(async () => (await app.kinds('a')).filter((kind) => kind === 'ExternalSubscribed').length === 2)
    await app.client.raiseEvent('a', 'e', 'mine')
    assert.deepEqual(outputOf(await app.end('a')), [1, 'mine'])
  })
})

describe('retries', () => {
  const counting = () => {
    const runs = []
    return {
      runs,
      activities: {
        async flaky(_ctx, failures) {
          runs.push(Date.now())
          if (runs.length <= failures) throw new Error(`try ${runs.length}`)
          return runs.length
        },
      },
    }
  }

  test('maxAttempts counts the first try, and the last error is thrown', async (t) => {
    const { runs, activities } = counting()
    const app = await liveApp(t, {
      activities,
      *main(ctx) {
        try {
          yield ctx.scheduleActivityWithRetry('flaky', 99, { maxAttempts: 3, backoff: 'exponential' })
        } catch (error) {
          return error.message.includes('try 3')
        }
      },
    })
    assert.equal(outputOf(await app.run('a')), true)
    assert.equal(runs.length, 3)
  })

  for (const [word, gaps] of [
    [undefined, [100, 200]],
    ['exponential', [100, 200]],
    ['linear', [100, 200]],
    ['anything', [100, 200]],
    ['fixed', [1000, 1000]],
  ]) {
    test(`backoff ${word ?? 'absent'} waits at least ${gaps.join(' and ')} ms`, async (t) => {
      const { runs, activities } = counting()
      const app = await liveApp(t, {
        activities,
        *main(ctx) {
          return yield ctx.scheduleActivityWithRetry('flaky', 2, { maxAttempts: 5, ...(word === undefined ? {} : { backoff: word }) })
        },
      })
      assert.equal(outputOf(await app.run('a')), 3)
      gaps.forEach((gap, i) => assert.ok(runs[i + 1] - runs[i] >= gap - 5, `${runs[i + 1] - runs[i]} ms`))
    })
  }

  test('maxAttempts 0 fails the orchestration with a clear text', async (t) => {
    const app = await liveApp(t, {
      *main(ctx) {
        yield ctx.scheduleActivityWithRetry('any', null, { maxAttempts: 0 })
      },
    })
    const { status, error } = await app.run('a')
    assert.equal(status, 'Failed')
    assert.match(error, /maxAttempts must be a whole number of at least 1/)
  })

  test('timeoutMs ends a try, which fails the call at once and is not tried again', async (t) => {
    let runs = 0
    const told = gate()
    t.after(() => told.open())
    const app = await liveApp(t, {
      activities: {
        async slow(ctx) {
          runs += 1
          await untilAborted(ctx)
          await told.promise
        },
      },
      *main(ctx) {
        try {
          yield ctx.scheduleActivityWithRetry('slow', null, { maxAttempts: 3, timeoutMs: 50 })
          return 'no error'
        } catch (error) {
          return error.message
        }
      },
    })
    assert.match(outputOf(await app.run('a')), /^timeout: activity timed out/)
    assert.equal(runs, 1)
  })

  test('totalTimeoutMs is a total over tries and pauses', async (t) => {
    const { runs, activities } = counting()
    const app = await liveApp(t, {
      activities,
      *main(ctx) {
        try {
          yield ctx.scheduleActivityWithRetry('flaky', 99, { maxAttempts: 50, backoff: 'fixed', totalTimeoutMs: 500 })
        } catch (error) {
          return error.message
        }
      },
    })
    assert.equal(typeof outputOf(await app.run('a')), 'string')
    assert.equal(runs.length, 1)
  })
})
