// Standalone activities: background jobs with no orchestration around them, as their users see them.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { ActivityFailedError, CancelledError, InstanceExistsError, TimeoutError, defineActivity } from '../../index.mjs'
import { gate, liveWorld, until } from '../support/live.mjs'

const FIXED = { backoff: 'fixed', baseDelayMs: 1, jitterPercent: 0 }

async function workerWith(t, activities, options) {
  const world = await liveWorld(t)
  await world.start({ activities, options })
  return world
}

describe('a standalone activity', { concurrency: 4 }, () => {
  test('runs with no orchestration registered, and its handle gives the result', async (t) => {
    const seen = []
    const { client } = await workerWith(t, {
      async mail(ctx, letter) {
        seen.push([ctx.instanceId, ctx.orchestrationName, ctx.executionId, ctx.attempt, ctx.delivery, ctx.idempotencyKey])
        return { to: letter.to, sent: true }
      },
    })
    const handle = await client.enqueueActivity('mail', { to: 'ann' }, { id: 'mail-1' })
    assert.equal(handle.created, true)
    assert.deepEqual(await handle.result({ timeoutMs: 20_000 }), { to: 'ann', sent: true })
    assert.deepEqual(seen, [['mail-1', null, 0, 1, 1, 'mail-1/0/0']])
    const info = await handle.status()
    assert.deepEqual([info.status, info.name, info.result], ['Completed', 'mail', { to: 'ann', sent: true }])
    // A waiter that comes after the end still reads it.
    assert.deepEqual(await client.activityHandle('mail-1').result(), { to: 'ann', sent: true })
  })

  test('is queued before any runtime is there, by name or by definition', async (t) => {
    const world = await liveWorld(t)
    const double = defineActivity('double', async (_ctx, n) => 2 * n)
    const handle = await world.client.enqueueActivity(double, 21)
    assert.equal((await handle.status()).status, 'Pending')
    await world.start({ activities: { double: double.fn } })
    assert.equal(await handle.result(), 42)
  })

  test('is found again by its id, and refuses another name or input', async (t) => {
    const { client } = await liveWorld(t)
    assert.equal((await client.enqueueActivity('mail', { a: 1 }, { id: 'one' })).created, true)
    assert.equal((await client.enqueueActivity('mail', { a: 1 }, { id: 'one' })).created, false)
    await assert.rejects(client.enqueueActivity('mail', { a: 2 }, { id: 'one' }), InstanceExistsError)
    await assert.rejects(client.enqueueActivity('other', { a: 1 }, { id: 'one' }), { code: 'INSTANCE_EXISTS' })
    const twice = await client.enqueueActivities([
      { activity: 'mail', input: 1, id: 'two' },
      { activity: 'mail', input: 1, id: 'two' },
      { activity: 'mail', input: { a: 1 }, id: 'one' },
    ])
    assert.deepEqual(twice.map((handle) => handle.created), [true, false, false])
  })

  test('of two clients at once with the same ids is made once', async (t) => {
    let runs = 0
    const { client } = await workerWith(t, { count: async () => (runs += 1) })
    const items = Array.from({ length: 50 }, (_, n) => ({ activity: 'count', id: `job-${n}`, retention: 'keep' }))
    const all = await Promise.all([client.enqueueActivities(items), client.enqueueActivities(items.toReversed()), client.enqueueActivities(items)])
    assert.equal(all.flat().filter((handle) => handle.created).length, 50)
    await Promise.all(all[0].map((handle) => handle.result({ timeoutMs: 20_000 })))
    assert.equal(runs, 50)
  })

  test('that was given a delay does not start before it', async (t) => {
    let startedAt
    const { client, sql } = await workerWith(t, { later: async () => void (startedAt = performance.now()) })
    const asked = performance.now()
    const before = Date.now()
    const handle = await client.enqueueActivity('later', null, { delayMs: 300 })
    const info = await handle.status()
    assert.equal(info.status, 'Pending')
    assert.ok(info.dueAt >= info.scheduledAt - 5 && info.dueAt > before + 250, 'it is due after its delay')
    await handle.result({ timeoutMs: 20_000 })
    assert.ok(startedAt - asked >= 299, `started ${startedAt - asked} ms after it was asked for`)
    assert.deepEqual(await sql('select count(*)::int as n from activity_queue'), [{ n: 0 }])
  })

  test('is tried again by its policy, and a failed one is kept with its error until it is retried', async (t) => {
    const attempts = []
    let isFixed = false
    const { client } = await workerWith(t, {
      async flaky(ctx) {
        attempts.push(ctx.attempt)
        if (!isFixed) throw Object.assign(new Error(`try ${ctx.attempt}`), { name: 'FlakyError', code: 'E_FLAKY', room: 7 })
        return 'sent'
      },
    })
    const handle = await client.enqueueActivity('flaky', null, { id: 'dead', retention: 0, retry: { maxAttempts: 3, ...FIXED } })
    await assert.rejects(handle.result(), (error) => {
      assert.ok(error instanceof ActivityFailedError)
      assert.deepEqual([error.name, error.message, error.code, error.room, error.activityName], ['FlakyError', 'try 3', 'E_FLAKY', 7, 'flaky'])
      return true
    })
    assert.deepEqual(attempts, [1, 2, 3])
    const [letter, ...rest] = (await client.listActivities({ status: 'Failed' })).activities
    assert.deepEqual([letter.id, letter.name, letter.attempt, letter.error.message, rest], ['dead', 'flaky', 3, 'try 3', []])
    isFixed = true
    assert.deepEqual(await client.retryActivity('dead'), { retried: true })
    assert.equal(await handle.result(), 'sent')
    assert.deepEqual(attempts, [1, 2, 3, 1])
    assert.deepEqual(await client.retryActivity('dead'), { retried: false })
  })

  test('without retention is deleted when it succeeds, and a waiter that was there still reads it', async (t) => {
    const hold = gate()
    const { client, sql } = await workerWith(t, { quick: async () => 1, held: async () => (await hold.promise, 'read') })
    const [quick, held] = await client.enqueueActivities([{ activity: 'quick' }, { activity: 'held' }])
    await until(async () => (await quick.status()).status === 'NotFound', 'the quick one is gone')
    await assert.rejects(quick.result(), { code: 'NOT_FOUND' })
    const waiting = held.result()
    await until(async () => (await sql('select retention_ms::int as n from activity_queue'))[0]?.n === 60_000, 'the wait is registered')
    hold.open()
    assert.equal(await waiting, 'read')
    assert.deepEqual(await sql('select count(*)::int as n from activity_queue'), [{ n: 0 }])
  })

  test('is forgotten when its retention is over', async (t) => {
    const { client, sql } = await workerWith(t, { quick: async () => 1 })
    const [short, kept] = await client.enqueueActivities([
      { activity: 'quick', retention: 1 },
      { activity: 'quick', retention: 'keep' },
    ])
    await until(async () => (await kept.status()).status === 'Completed', 'the kept one is done')
    assert.equal(await kept.result(), 1)
    assert.deepEqual(await client.deleteActivity(kept.id), { deleted: true })
    assert.deepEqual(await client.deleteActivity(kept.id), { deleted: false })
    assert.equal((await kept.status()).status, 'NotFound')
    await until(async () => (await sql('select count(*)::int as n from ended_activity'))[0].n === 0, 'the sweep')
    assert.equal((await short.status()).status, 'NotFound')
  })

  test('that is cancelled before it starts never starts', async (t) => {
    const ran = []
    const world = await liveWorld(t)
    const handles = await world.client.enqueueActivities([{ activity: 'note', input: 'a' }, { activity: 'note', input: 'b' }])
    assert.deepEqual(await handles[0].cancel('not wanted'), { cancelled: true })
    await world.start({ activities: { note: async (_ctx, input) => void ran.push(input) } })
    await assert.rejects(handles[0].result(), (error) => error instanceof CancelledError && /not wanted/.test(error.message))
    await until(async () => (await handles[1].status()).status === 'NotFound', 'the other is done')
    assert.deepEqual(ran, ['b'])
    assert.deepEqual(await handles[0].cancel(), { cancelled: false })
    assert.equal((await handles[0].status()).status, 'Cancelled')
  })

  test('that runs in the same process sees its cancellation at once', async (t) => {
    const begun = gate()
    const ended = gate()
    // No heartbeat tells it within the time of this test.
    const { client } = await workerWith(
      t,
      {
        async long(ctx) {
          begun.open()
          await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
          ended.open([ctx.isCancelled(), ctx.signal.reason.code])
          throw ctx.signal.reason
        },
      },
      { heartbeatIntervalMs: 60_000, staleAfterMs: 240_000 },
    )
    const handle = await client.enqueueActivity('long')
    await begun.promise
    await assert.rejects(client.deleteActivity(handle.id), { code: 'STILL_RUNNING' })
    await handle.cancel('enough')
    assert.deepEqual(await ended.promise, [true, 'CANCELLED'])
    await assert.rejects(handle.result(), CancelledError)
  })

  test('that does not end in time leaves its waiter with a TimeoutError', async (t) => {
    const { client } = await liveWorld(t)
    const handle = await client.enqueueActivity('nobody has this')
    await assert.rejects(handle.result({ timeoutMs: 20 }), TimeoutError)
    assert.equal((await handle.status()).status, 'Pending')
  })

  test('has an id of its own: an instance of the same id is another thing', async (t) => {
    const world = await liveWorld(t)
    await world.start({
      activities: { work: async (ctx) => ctx.orchestrationName },
      orchestrations: { main: async (ctx) => await ctx.scheduleActivity('work') },
    })
    const handle = await world.client.enqueueActivity('work', null, { id: 'same', delayMs: 200 })
    assert.equal((await world.run('same')).output, 'main')
    await world.client.deleteInstance('same')
    assert.equal(await handle.result(), null)
  })
})

describe('a list of standalone activities', { concurrency: 4 }, () => {
  test('goes by id, page by page, over waiting and ended ones, with filters', async (t) => {
    const world = await liveWorld(t)
    const { client } = world
    const item = (n, rest) => ({ activity: n % 2 ? 'odd' : 'even', id: `job-${n}`, retention: 'keep', ...rest })
    await client.enqueueActivities([0, 1, 2, 3, 4].map((n) => item(n)))
    const runtime = await world.start({ activities: { odd: async () => 'ok', even: async () => { throw new Error('no') } } })
    await until(async () => (await client.listActivities({ status: 'Pending' })).activities.length === 0, 'all have ended')
    await until(async () => (await client.listActivities({ status: 'Running' })).activities.length === 0, 'all have ended')
    await runtime.shutdown()
    await client.enqueueActivities([5, 6].map((n) => item(n, { tag: 'slow', delayMs: 60_000 })))
    await client.enqueueActivity('odd', null, { id: 'other' })
    const all = await client.listActivities({ idPrefix: 'job-' })
    assert.deepEqual(all.activities.map(({ id, status }) => [id, status]), [
      ['job-0', 'Failed'],
      ['job-1', 'Completed'],
      ['job-2', 'Failed'],
      ['job-3', 'Completed'],
      ['job-4', 'Failed'],
      ['job-5', 'Pending'],
      ['job-6', 'Pending'],
    ])
    const ids = []
    let cursor
    do {
      const page = await client.listActivities({ limit: 3, cursor })
      ids.push(page.activities.map(({ id }) => id))
      cursor = page.cursor
    } while (cursor !== undefined)
    assert.deepEqual(ids.flat(), ['job-0', 'job-1', 'job-2', 'job-3', 'job-4', 'job-5', 'job-6', 'other'])
    const names = async (filter) => (await client.listActivities(filter)).activities.map(({ id }) => id)
    assert.deepEqual(await names({ tag: 'slow' }), ['job-5', 'job-6'])
    assert.deepEqual(await names({ name: 'odd', status: 'Completed' }), ['job-1', 'job-3'])
    assert.deepEqual(await names({ status: 'Failed', limit: 2 }), ['job-0', 'job-2'])
    await assert.rejects(client.listActivities({ state: 'Failed' }), /'state' is unknown/)
    await assert.rejects(client.listActivities({ status: 'Dead' }), /status must be one of/)
  })
})

describe('what is queued', { concurrency: 4 }, () => {
  test('is checked before anything is sent', async (t) => {
    const { client, sql } = await liveWorld(t)
    const bad = [
      [['', null], /activity name must not be empty/],
      [['mail', 1n], /input of activity 'mail'/],
      [['mail', null, { id: 7 }], /activity id must be a string/],
      [['mail', null, { delayMs: -1 }], /delayMs must be a whole number/],
      [['mail', null, { retention: 'ever' }], /retention/],
      [['mail', null, { retry: { maxAttempts: 0 } }], /maxAttempts/],
      [['mail', null, { tries: 3 }], /'tries' is unknown/],
    ]
    for (const [args, text] of bad) await assert.rejects(async () => await client.enqueueActivity(...args), text)
    await assert.rejects(client.enqueueActivities([{ activity: 'mail' }, { activity: 'mail', input: { deep: 1n } }]), /input of activity 'mail'/)
    await assert.rejects(client.enqueueActivities('mail'), /takes a list/)
    assert.deepEqual(await sql('select count(*)::int as n from activity_queue'), [{ n: 0 }])
    assert.deepEqual(await client.enqueueActivities([]), [])
  })

  test('in thousands runs completely, each once', async (t) => {
    const runs = new Map()
    const { client, sql } = await workerWith(t, { note: async (_ctx, n) => void runs.set(n, (runs.get(n) ?? 0) + 1) }, { workerConcurrency: 256 })
    const items = Array.from({ length: 6000 }, (_, n) => ({ activity: 'note', input: n }))
    const handles = await client.enqueueActivities(items)
    assert.equal(new Set(handles.map((handle) => handle.id)).size, 6000)
    await until(async () => (await sql('select count(*)::int as n from activity_queue'))[0].n === 0, 'all are done')
    assert.equal(runs.size, 6000)
    assert.ok([...runs.values()].every((count) => count === 1))
    assert.deepEqual(await sql('select count(*)::int as n from ended_activity'), [{ n: 0 }])
  })

  test('with a large input comes back the same', async (t) => {
    const { client } = await workerWith(t, { echo: async (_ctx, input) => input })
    const input = { text: 'ä\u0000"\\'.repeat(300_000), number: 1.5e300 }
    const handle = await client.enqueueActivity('echo', input)
    assert.deepEqual(await handle.result(), input)
  })
})
