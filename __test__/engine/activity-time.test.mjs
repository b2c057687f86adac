// Activities and time: limits of one try and of all tries, heartbeats and what they leave behind, cancellation.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { TimeoutError } from '../../index.mjs'
import { gate, liveApp, liveWorld, outputOf, until } from '../support/live.mjs'

const FIXED = { backoff: 'fixed', baseDelayMs: 1, jitterPercent: 0 }
const GRACE = { activityCancellationGracePeriodMs: 50 }
const never = () => new Promise(() => {})

async function workerWith(t, activities, options) {
  const world = await liveWorld(t)
  await world.start({ activities, options })
  return world
}

/** A body that rejects with its signal's reason. */
const heeds = (ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))

describe('a time limit', { concurrency: 4 }, () => {
  test('counts from the start of the body, not while the activity waits for a slot', async (t) => {
    const first = gate()
    const { client } = await workerWith(
      t,
      { first: async () => await first.promise, second: async (ctx) => (ctx.signal.aborted ? 'late' : ctx.deadline instanceof Date) },
      { workerConcurrency: 1 },
    )
    const held = await client.enqueueActivity('first')
    await until(async () => (await held.status()).status === 'Running', 'the first runs')
    const waiting = await client.enqueueActivity('second', null, { timeoutMs: 150 })
    await new Promise((resolve) => setTimeout(resolve, 300))
    first.open('done')
    assert.equal(await waiting.result(), true)
  })

  test('ends a body that never settles: after the grace its slot is free, and a late answer is ignored', async (t) => {
    const late = gate()
    const { client } = await workerWith(
      t,
      { stuck: async () => await late.promise, next: async () => 'ran' },
      { workerConcurrency: 1, ...GRACE },
    )
    const stuck = await client.enqueueActivity('stuck', null, { timeoutMs: 50 })
    const next = await client.enqueueActivity('next')
    await assert.rejects(stuck.result(), (error) => {
      assert.ok(error instanceof TimeoutError)
      assert.equal(error.code, 'TIMEOUT')
      assert.match(error.message, /^timeout: activity timed out: its time limit of 50 ms passed/)
      return true
    })
    assert.equal(await next.result(), 'ran')
    late.open('too late')
    assert.equal((await stuck.status()).status, 'Failed')
  })

  test('is a failed try for a retry policy, and a default comes from the runtime', async (t) => {
    const attempts = []
    const { client } = await workerWith(
      t,
      {
        async slow(ctx) {
          attempts.push(ctx.attempt)
          return ctx.attempt < 3 ? await heeds(ctx) : 'fast'
        },
      },
      { activityTimeoutMs: 50, ...GRACE },
    )
    assert.equal(await (await client.enqueueActivity('slow', null, { retry: { maxAttempts: 3, ...FIXED } })).result(), 'fast')
    assert.deepEqual(attempts, [1, 2, 3])
    const final = await client.enqueueActivity('slow', null, { retry: { maxAttempts: 3, nonRetryable: ['TimeoutError'], ...FIXED } })
    await assert.rejects(final.result(), TimeoutError)
    assert.deepEqual(attempts, [1, 2, 3, 1])
  })

  test('over all tries cuts the try that is under way and starts no other', async (t) => {
    const attempts = []
    const { client } = await workerWith(
      t,
      {
        async slow(ctx) {
          attempts.push(ctx.attempt)
          await heeds(ctx)
        },
      },
      GRACE,
    )
    const policy = { maxAttempts: 100, timeoutMs: 100, totalTimeoutMs: 350, ...FIXED }
    const asked = performance.now()
    const handle = await client.enqueueActivity('slow', null, { retry: policy })
    await assert.rejects(handle.result(), /timeout: activity timed out/)
    assert.ok(performance.now() - asked >= 300, 'not before its time')
    assert.ok(attempts.length >= 1 && attempts.length <= 4, `${attempts.length} tries of 100 ms within 350 ms`)
    const late = await client.enqueueActivity('nobody', null, { retry: { ...policy, totalTimeoutMs: 1 } })
    assert.equal((await late.status()).status, 'Pending')
  })

  test('in an orchestration is caught with the text of the older call', async (t) => {
    const app = await liveApp(t, {
      activities: { stuck: never },
      options: GRACE,
      async main(ctx) {
        try {
          return await ctx.scheduleActivityWithRetry('stuck', null, { maxAttempts: 1, timeoutMs: 50 })
        } catch (error) {
          return [error.name, error.code, error.message.includes('timeout: activity timed out')]
        }
      },
    })
    assert.deepEqual(outputOf(await app.run('one')), ['TimeoutError', 'TIMEOUT', true])
  })

  test('near the largest number of ms gives a valid deadline', async (t) => {
    const { client } = await workerWith(t, { when: async (ctx) => ctx.deadline.getTime() })
    const handle = await client.enqueueActivity('when', null, { timeoutMs: Number.MAX_SAFE_INTEGER })
    assert.equal(await handle.result(), 8.64e15)
  })
})

describe('heartbeats', { concurrency: 4 }, () => {
  test('that stop for too long end the try; the next one goes on from the last details', async (t) => {
    const seen = []
    const { client } = await workerWith(
      t,
      {
        async pages(ctx) {
          seen.push([ctx.attempt, ctx.lastHeartbeatDetails])
          if (ctx.attempt > 1) return ctx.lastHeartbeatDetails
          for (let page = 1; page <= 5; page++) {
            ctx.heartbeat({ page })
            await new Promise((resolve) => setTimeout(resolve, 300))
          }
          return await never()
        },
      },
      GRACE,
    )
    // Heartbeats are gathered before they are told, so shorter silences cannot be judged.
    await assert.rejects(client.enqueueActivity('pages', null, { heartbeatTimeoutMs: 999 }), /heartbeatTimeoutMs/)
    const handle = await client.enqueueActivity('pages', null, { heartbeatTimeoutMs: 1000, retry: { maxAttempts: 2, ...FIXED } })
    assert.deepEqual(await handle.result(), { page: 5 })
    assert.deepEqual(seen, [[1, null], [2, { page: 5 }]])
  })

  test('of a try that fails at once reach the next one, and lists show them', async (t) => {
    const hold = gate()
    const { client } = await workerWith(t, {
      async import(ctx) {
        if (ctx.attempt === 1) {
          for (let row = 0; row < 1000; row++) ctx.heartbeat(row)
          throw new Error('row 999 is bad')
        }
        ctx.heartbeat([ctx.lastHeartbeatDetails, 'and on'])
        return await hold.promise
      },
    })
    const handle = await client.enqueueActivity('import', null, { id: 'import', retry: { maxAttempts: 2, ...FIXED } })
    const shown = await until(async () => {
      const info = await handle.status()
      return Array.isArray(info.heartbeatDetails) && info
    }, 'the heartbeat of the second try')
    assert.deepEqual(shown.heartbeatDetails, [999, 'and on'])
    assert.ok(Math.abs(shown.heartbeatAt - Date.now()) < 60_000)
    hold.open('done')
    assert.equal(await handle.result(), 'done')
  })

  test('of a job that fails for good are kept with it, also when it fails at once', async (t) => {
    const { client } = await workerWith(t, {
      async import(ctx) {
        ctx.heartbeat('row 7')
        throw new Error('row 8 is bad')
      },
      async export(ctx) {
        ctx.heartbeat('half')
        // Longer than heartbeats are gathered: this one is on its way to the database when the body ends.
        await new Promise((resolve) => setTimeout(resolve, 60))
        ctx.heartbeat('all')
        throw new Error('the disk is full')
      },
    })
    for (const [name, last] of [['import', 'row 7'], ['export', 'all']]) {
      const handle = await client.enqueueActivity(name, null, { id: name })
      await assert.rejects(handle.result())
      assert.equal((await handle.status()).heartbeatDetails, last)
    }
  })

  test('survive a runtime that stops: the next delivery goes on elsewhere', async (t) => {
    const world = await liveWorld(t)
    const told = gate()
    const first = await world.start({
      activities: {
        async long(ctx) {
          ctx.heartbeat('half')
          told.open()
          return await heeds(ctx)
        },
      },
    })
    const handle = await world.client.enqueueActivity('long')
    await told.promise
    await new Promise((resolve) => setTimeout(resolve, 100))
    await first.shutdown(0)
    await world.start({ activities: { long: async (ctx) => [ctx.attempt, ctx.delivery, ctx.lastHeartbeatDetails] } })
    assert.deepEqual(await handle.result(), [1, 2, 'half'])
  })

  test('are refused when they are not JSON or too large', async (t) => {
    const { client } = await workerWith(t, {
      async bad(ctx) {
        const errors = []
        for (const details of [1n, 'x'.repeat(70_000)]) {
          try {
            ctx.heartbeat(details)
          } catch (error) {
            errors.push(error.code)
          }
        }
        return errors
      },
    })
    assert.deepEqual(await (await client.enqueueActivity('bad')).result(), ['INVALID_PAYLOAD', 'INVALID_PAYLOAD'])
  })
})

describe('an activity that is not wanted any more', { concurrency: 4 }, () => {
  test('as the loser of a race sees its signal at once, and its slot is free after the grace', async (t) => {
    const seen = gate()
    const app = await liveApp(t, {
      options: { workerConcurrency: 1, heartbeatIntervalMs: 60_000, staleAfterMs: 240_000, ...GRACE },
      activities: {
        loser(ctx) {
          ctx.signal.addEventListener('abort', () => seen.open(ctx.isCancelled()))
          return never()
        },
        next: async () => 'next',
      },
      async main(ctx) {
        await ctx.race(ctx.scheduleActivity('loser'), ctx.scheduleTimer(100))
        return await ctx.scheduleActivity('next')
      },
    })
    assert.equal(outputOf(await app.run('one')), 'next')
    assert.equal(await seen.promise, true)
  })

  test('because its instance was cancelled by another process is told with the next heartbeat', async (t) => {
    const world = await liveWorld(t)
    const [begun, seen] = [gate(), gate()]
    await world.start({
      activities: {
        async polls(ctx) {
          begun.open()
          while (!ctx.isCancelled()) await new Promise((resolve) => setTimeout(resolve, 10))
          seen.open(performance.now())
        },
      },
    })
    // Its orchestration runs on a provider of its own: nothing in this process hints.
    const other = await liveWorld(t, { schema: world.schema })
    await other.start({ orchestrations: { main: async (ctx) => await ctx.scheduleActivity('polls') }, options: { workerConcurrency: 0 } })
    await other.client.startOrchestration('one', 'main')
    await begun.promise
    const asked = performance.now()
    await other.client.cancelInstance('one', 'enough')
    assert.ok((await seen.promise) - asked < 20_000)
    assert.match((await other.end('one')).error, /canceled: enough/)
  })
})
