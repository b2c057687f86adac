// What fails, and what the caller sees of it: retries, errors with their fields, cancellation, foreign waits.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { ActivityFailedError, CancelledError, OrchestrationFailedError, TimeoutError } from '../../index.mjs'
import { gate, liveApp, liveWorld, outputOf, until } from '../support/live.mjs'

class CardDeclined extends Error {
  constructor(message, balance) {
    super(message)
    this.name = 'CardDeclined'
    this.code = 'E_FUNDS'
    this.balance = balance
    this.when = { day: 3, tried: [1, 2] }
  }
}

const declined = async () => {
  throw new CardDeclined('no funds', 12)
}

describe('a retry policy', { concurrency: 4 }, () => {
  test('runs the activity until it succeeds; each try knows its number', async (t) => {
    const attempts = []
    const app = await liveApp(t, {
      activities: {
        async flaky(ctx) {
          attempts.push(ctx.attempt)
          if (ctx.attempt < 3) throw new Error(`try ${ctx.attempt}`)
          return ctx.attempt
        },
      },
      main: async (ctx) => await ctx.scheduleActivity('flaky', null, { retry: { maxAttempts: 5, baseDelayMs: 5, backoff: 'fixed', jitterPercent: 0 } }),
    })
    assert.equal(outputOf(await app.run('one')), 3)
    assert.deepEqual(attempts, [1, 2, 3])
    assert.deepEqual(await app.kinds('one'), ['OrchestrationStarted', 'ActivityScheduled', 'ActivityCompleted', 'OrchestrationCompleted'])
  })

  test('that is used up gives the last error; without a policy there is one try', async (t) => {
    const attempts = []
    const app = await liveApp(t, {
      activities: {
        async broken(ctx) {
          attempts.push(ctx.attempt)
          throw new Error(`try ${ctx.attempt}`)
        },
      },
      async main(ctx) {
        const text = (error) => error.message
        const retried = await ctx.scheduleActivityWithRetry('broken', null, { maxAttempts: 3, baseDelayMs: 0 }).catch(text)
        return [retried, await ctx.scheduleActivity('broken').catch(text)]
      },
    })
    assert.deepEqual(outputOf(await app.run('one')), ['try 3', 'try 1'])
    assert.deepEqual(attempts, [1, 2, 3, 1])
  })

  test('does not try again after an error of a listed name, or one that says so itself', async (t) => {
    let tries = 0
    const app = await liveApp(t, {
      activities: {
        async listed() {
          tries += 1
          throw new CardDeclined('no', 0)
        },
        async says() {
          tries += 1
          throw Object.assign(new Error('never'), { retryable: false })
        },
      },
      async main(ctx) {
        const retry = { maxAttempts: 5, baseDelayMs: 1, nonRetryable: ['CardDeclined'] }
        return [
          await ctx.scheduleActivity('listed', null, { retry }).catch((error) => error.name),
          await ctx.scheduleActivity('says', null, { retry }).catch((error) => error.message),
        ]
      },
    })
    assert.deepEqual(outputOf(await app.run('one')), ['CardDeclined', 'never'])
    assert.equal(tries, 2)
  })

  test('with a time limit for each try aborts a slow try', async (t) => {
    const reasons = []
    const app = await liveApp(t, {
      activities: {
        slow: (ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason, reasons.push(ctx.signal.reason.code)))),
      },
      async main(ctx) {
        return await ctx.scheduleActivity('slow', null, { retry: { maxAttempts: 2, baseDelayMs: 1 }, timeoutMs: 50 }).catch((error) => [error instanceof TimeoutError, error.code])
      },
    })
    assert.deepEqual(outputOf(await app.run('one')), [true, 'TIMEOUT'])
    assert.deepEqual(reasons, ['TIMEOUT', 'TIMEOUT'])
  })
})

describe('an error', { concurrency: 4 }, () => {
  const seen = (error) => {
    const { name, message, code, balance, when } = error
    return { name, message, code, balance, when, cause: error.cause?.name, placed: /failures\.test\.mjs/.test(error.stack) }
  }
  const expected = { name: 'CardDeclined', message: 'no funds', code: 'E_FUNDS', balance: 12, when: { day: 3, tried: [1, 2] }, cause: 'CardDeclined', placed: true }

  for (const stickyCacheSize of [1000, 0]) {
    test(`of an activity keeps name, message, code and fields in the orchestration's catch (${stickyCacheSize} kept)`, async (t) => {
      const app = await liveApp(t, {
        options: { stickyCacheSize },
        activities: { declined },
        async main(ctx) {
          const error = await ctx.scheduleActivity('declined').catch((error) => error)
          await ctx.scheduleTimer(1)
          return { ...seen(error), is: error instanceof ActivityFailedError, activityName: error.activityName }
        },
      })
      assert.deepEqual(outputOf(await app.run('one')), { ...expected, is: true, activityName: 'declined' })
    })
  }

  test('that an orchestration passes on keeps them in the result of the handle', async (t) => {
    const app = await liveApp(t, { activities: { declined }, main: async (ctx) => await ctx.scheduleActivity('declined') })
    const handle = await app.client.start('main')
    const error = await handle.result({ timeoutMs: 20_000 }).then(assert.fail, (error) => error)
    assert.ok(error instanceof OrchestrationFailedError)
    assert.equal(error.orchestrationName, 'main')
    assert.deepEqual(seen(error), expected)
  })

  test('of an orchestration is the text of its failed status', async (t) => {
    const app = await liveApp(t, {
      async main() {
        throw new TypeError('the order has no lines')
      },
    })
    const { status, error, output } = await app.run('one')
    assert.equal(status, 'Failed')
    assert.equal(output, undefined)
    assert.match(error, /TypeError: the order has no lines/)
    assert.match(error, /failures\.test\.mjs/)
    await assert.rejects(app.client.waitForOrchestrationTyped('one'), /the order has no lines/)
  })

  test('that is no Error at all is told as what it is', async (t) => {
    const app = await liveApp(t, {
      activities: {
        text: async () => Promise.reject('just text'),
        nothing: async () => Promise.reject(undefined),
        object: async () => Promise.reject({ reason: 7 }),
        hostile: async () => Promise.reject(new Proxy({}, { get: () => { throw new Error('no') } })),
      },
      async main(ctx) {
        const parts = await ctx.all(['text', 'nothing', 'object', 'hostile'].map((name) => ctx.scheduleActivity(name)))
        return parts.map((part) => part.err)
      },
    })
    const [text, nothing, object, hostile] = outputOf(await app.run('one'))
    assert.deepEqual([text, nothing, object], ['just text', 'undefined', '{"reason":7}'])
    assert.equal(typeof hostile, 'string')
  })
})

describe('cancellation', { concurrency: 4 }, () => {
  test('ends a waiting instance as failed, with the reason, for good', async (t) => {
    const app = await liveApp(t, { main: async (ctx) => await ctx.waitForEvent('go') })
    const handle = await app.client.start('main', undefined, { id: 'one' })
    await until(async () => (await app.kinds('one')).includes('ExternalSubscribed'), 'it waits')
    assert.deepEqual(await handle.cancel('not needed'), { accepted: true })
    const { status, error } = await app.end('one')
    assert.deepEqual([status, error], ['Failed', 'canceled: not needed'])
    await assert.rejects(handle.result(), CancelledError)
    assert.deepEqual(await app.client.raiseEvent('one', 'go'), { accepted: false })
    assert.deepEqual(await app.client.cancelInstance('one', 'again'), { accepted: false })
    assert.equal((await app.end('one')).error, 'canceled: not needed')
  })

  test('aborts the signal of a running activity within one heartbeat, and takes the others from the queue', async (t) => {
    const interval = 1000
    const running = gate()
    const stopped = gate()
    const app = await liveApp(t, {
      options: { heartbeatIntervalMs: interval, staleAfterMs: 4 * interval, workerConcurrency: 1 },
      activities: {
        slow(ctx) {
          running.open()
          return new Promise((_, reject) => {
            ctx.signal.addEventListener('abort', () => {
              stopped.open([Date.now(), ctx.signal.reason.code, ctx.isCancelled()])
              reject(ctx.signal.reason)
            })
          })
        },
      },
      main: async (ctx) => await ctx.all([ctx.scheduleActivity('slow'), ctx.scheduleActivity('slow'), ctx.scheduleTimer(3_600_000)]),
    })
    await app.client.startOrchestration('one', 'main')
    await running.promise
    await app.client.cancelInstance('one', 'stop')
    assert.equal((await app.end('one')).error, 'canceled: stop')
    const ended = Date.now()
    const [at, code, isCancelled] = await stopped.promise
    assert.deepEqual([code, isCancelled], ['CANCELLED', true])
    // The other half is for a busy machine: the signal's way is one heartbeat and one crossing.
    assert.ok(at - ended < interval * 1.5, `the signal came ${at - ended} ms after the end`)
    assert.deepEqual(await app.sql('select * from activity_queue'), [])
    assert.deepEqual(await app.sql('select * from inbox'), [])
  })

  test('wins over code that swallows it and completes, after its cleaning up was carried out', async (t) => {
    const log = []
    const app = await liveApp(t, {
      activities: { undo: async (ctx, what) => log.push(`undo ${what}`) },
      *main(ctx) {
        try {
          yield ctx.waitForEvent('go')
        } catch (error) {
          log.push(error.message)
          yield ctx.scheduleActivity('undo', 'it')
        } finally {
          log.push('finally')
        }
        return 'completed'
      },
    })
    await app.client.startOrchestration('one', 'main')
    await until(async () => (await app.kinds('one')).includes('ExternalSubscribed'), 'it waits')
    await app.client.cancelInstance('one', 'now')
    const { status, error } = await app.end('one')
    assert.deepEqual([status, error], ['Failed', 'canceled: now'])
    assert.deepEqual(log, ['canceled: now', 'undo it', 'finally'])
    assert.deepEqual((await app.kinds('one')).slice(-4), ['OrchestrationCancelRequested', 'ActivityScheduled', 'ActivityCompleted', 'OrchestrationFailed'])
  })

  test('lets the code clean up with durable steps on any node, for a limited time', async (t) => {
    const world = await liveWorld(t)
    const ran = []
    const main = async (ctx, input) => {
      try {
        await ctx.all([ctx.scheduleActivity('slow'), ctx.scheduleSubOrchestration('kid'), ctx.scheduleTimer(3_600_000)])
      } finally {
        ctx.setValue('cleaned', String(ctx.isCancelled))
        await ctx.scheduleTimer(5)
        const parts = await ctx.all([ctx.scheduleActivity('undo', 1), ctx.scheduleActivity('undo', 2)])
        ctx.setCustomStatus(parts.map(({ ok }) => ok).join(' '))
        if (input === 'forever') await ctx.waitForEvent('never')
      }
    }
    const activities = {
      slow: ({ signal }) => new Promise((resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
      undo: async (ctx, n) => (ran.push(n), `undone ${n}`),
    }
    const kid = async (ctx) => await ctx.waitForEvent('never')
    // Two nodes and no kept frames: each turn of the cleaning up is a replay, mostly elsewhere.
    for (let i = 0; i < 2; i++) await world.start({ activities, orchestrations: { main, kid }, options: { stickyCacheSize: 0 } })
    for (const id of ['one', 'two']) {
      await world.client.startOrchestration(id, 'main', id === 'two' ? 'forever' : null)
      await until(async () => (await world.kinds(id)).includes('TimerCreated'), 'it waits')
      await world.client.cancelInstance(id, 'enough')
    }
    assert.equal((await world.end('one')).error, 'canceled: enough')
    assert.equal((await world.client.getStatus('one')).customStatus, 'undone 1 undone 2')
    assert.equal(await world.client.getValue('one', 'cleaned'), 'true')
    await until(async () => (await world.client.getStatus('two')).customStatus === 'undone 1 undone 2', 'it cleaned up')
    assert.equal((await world.client.getStatus('two')).status, 'Running')
    assert.deepEqual(ran.sort(), [1, 1, 2, 2])
    // Its time is over: the timer of the request, five minutes after it, is due now.
    await world.sql("update inbox set due_at = now() where instance = 'two' and kind = 'TimerFired'")
    await world.sql("update turn_queue set due_at = now() where instance = 'two' and owner is null")
    assert.equal((await world.end('two')).error, 'canceled: enough')
    for (const id of ['one', 'two']) assert.ok(!(await world.kinds(id)).includes('OrchestrationCompleted'))
    for (const table of ['inbox', 'activity_queue', 'turn_queue']) {
      await until(async () => (await world.sql(`select * from ${table}`)).length === 0, `${table} is empty`)
    }
  })

  test('before the first turn ends the instance without running it', async (t) => {
    const app = await liveApp(t, { main: async () => 'ran' })
    await app.client.startOrchestration('early', 'later')
    assert.deepEqual(await app.client.cancelInstance('early', 'changed my mind'), { accepted: true })
    await app.start({ orchestrations: { later: async (ctx) => await ctx.scheduleTimer(3_600_000) } })
    assert.equal((await app.end('early')).error, 'canceled: changed my mind')
  })

  test('of one instance leaves the others alone', async (t) => {
    const app = await liveApp(t, { main: async (ctx) => await ctx.waitForEvent('go') })
    for (const id of ['one', 'two']) await app.client.startOrchestration(id, 'main')
    await app.client.cancelInstance('one', '')
    assert.equal((await app.end('one')).error, 'canceled')
    await app.client.raiseEvent('two', 'go', 2)
    assert.equal(outputOf(await app.end('two')), 2)
  })
})

describe('a wait for something foreign', { concurrency: 4 }, () => {
  const foreign = {
    fetch: async () => await fetch('http://127.0.0.1:59321/'),
    setTimeout: async () => await new Promise((resolve) => setTimeout(resolve, 5)),
    'a promise that never settles': async () => await new Promise(() => {}),
    'setImmediate after a step': async (ctx) => {
      await ctx.scheduleTimer(1)
      await new Promise((resolve) => setImmediate(resolve))
      return await ctx.scheduleTimer(1)
    },
  }
  for (const [what, main] of Object.entries(foreign)) {
    test(`such as ${what} fails at once, names the orchestration and says what to use`, async (t) => {
      const app = await liveApp(t, { main, orchestrations: { fine: async (ctx) => await ctx.scheduleTimer(1) } })
      const { status, error } = await app.run('one')
      assert.equal(status, 'Failed')
      assert.match(error, /orchestration 'main' \(instance 'one'\) waits for something that is not a task of its context/)
      assert.match(error, /ctx\.scheduleActivity.*ctx\.scheduleTimer.*ctx\.waitForEvent/)
      await app.client.startOrchestration('two', 'fine')
      outputOf(await app.end('two'))
    })
  }

  test('yielded by a generator throws at the yield', async (t) => {
    const app = await liveApp(t, {
      *main() {
        yield Promise.resolve(1)
      },
    })
    const { status, error } = await app.run('one')
    assert.equal(status, 'Failed')
    assert.match(error, /Invalid generator step result: orchestration 'main' yielded a promise; .*ctx\.scheduleActivity/)
  })
})
