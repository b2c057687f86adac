// Activities, as a user writes them: context, signal, results, errors, retries.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { holdfast, runOnce } from '../support/app.mjs'

const { ActivityRunner } = createRequire(import.meta.url)('../../dist/cjs/activity/runner.js')

const JOB = {
  h: 5,
  name: 'work',
  input: { n: 1 },
  instance: 'one',
  execution: 2,
  event: 3,
  orchestration: 'main',
  version: '1.0.0',
  attempt: 2,
  delivery: 4,
  maxAttempts: 5,
  tag: 'gpu',
  session: 's',
  workerId: 'node-1',
  timeoutMs: 1000,
}

/** Runs one job; `end` resolves with its parsed answer. */
function runner(body, client = () => 'client') {
  let answered
  const end = new Promise((resolve) => (answered = resolve))
  const runner = new ActivityRunner((name) => (name === 'work' ? body : undefined), client, (text) => answered(JSON.parse(text)), 1000)
  return { runner, end }
}

test('the context says who asked, which try it is and how long it may take', async () => {
  let seen
  const before = Date.now()
  const { runner: running, end } = runner((ctx, input) => {
    seen = { ctx, input, client: ctx.getClient() }
    return 'done'
  })
  running.start(JOB)
  assert.deepEqual(await end, { h: 5, ok: 'done' })
  const { ctx } = seen
  assert.deepEqual(seen.input, { n: 1 })
  assert.deepEqual([ctx.instanceId, ctx.executionId, ctx.orchestrationName, ctx.orchestrationVersion], ['one', 2, 'main', '1.0.0'])
  assert.deepEqual([ctx.activityName, ctx.workerId, ctx.sessionId, ctx.attempt, ctx.delivery, ctx.tag()], ['work', 'node-1', 's', 2, 4, 'gpu'])
  assert.equal(ctx.idempotencyKey, 'one/2/3')
  assert.ok(ctx.deadline.getTime() >= before + 1000, 'counted from the start of the body')
  assert.equal(ctx.lastHeartbeatDetails, null)
  assert.ok(ctx.signal instanceof AbortSignal)
  assert.equal(ctx.isCancelled(), false)
  assert.equal(seen.client, 'client')
  assert.equal(ctx.getClient(), null, 'the activity has ended')
})

test('a synchronous result, a promise and nothing are answers', async () => {
  for (const [body, ok] of [[() => 1, 1], [async () => [2], [2]], [() => undefined, null]]) {
    const { runner: running, end } = runner(body)
    running.start(JOB)
    assert.deepEqual(await end, { h: 5, ok })
  }
})

test('an error, and a result that JSON cannot hold or that is too long, are failures', async () => {
  const bodies = [
    [() => { throw Object.assign(new TypeError('bad'), { code: 'E_BAD', field: 1 }) }, 'E_BAD', /^bad$/],
    [async () => 1n, 'INVALID_PAYLOAD', /result of activity 'work' is a BigInt/],
    [() => 'x'.repeat(2000), 'INVALID_PAYLOAD', /more than the limit of 1000/],
  ]
  for (const [body, code, text] of bodies) {
    const { runner: running, end } = runner(body)
    running.start(JOB)
    const { err } = await end
    assert.equal(err.code, code)
    assert.match(err.message, text)
  }
})

test('an activity without a function is put back as such', async () => {
  const { runner: running, end } = runner(() => 1)
  running.start({ ...JOB, name: 'unknown' })
  assert.deepEqual(await end, { h: 5, unregistered: true })
})

test('an abort reaches the signal with its reason; how the activity ends then decides what is answered', async () => {
  const waiting = (ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
  const ends = {
    cancelled: { code: 'CANCELLED', type: holdfast.CancelledError },
    timeout: { code: 'TIMEOUT', type: holdfast.TimeoutError },
    shutdown: { abandon: true, code: 'SHUTDOWN', type: holdfast.HoldfastError },
    lost: { abandon: true, code: 'LEASE_LOST', type: holdfast.HoldfastError },
  }
  for (const [reason, { abandon, code, type }] of Object.entries(ends)) {
    let ctx
    const { runner: running, end } = runner((given) => waiting((ctx = given)))
    running.start(JOB)
    running.abort({ h: 5, reason })
    running.abort({ h: 5, reason: 'lost' })
    const answer = await end
    assert.ok(ctx.isCancelled())
    assert.ok(ctx.signal.reason instanceof type)
    assert.equal(ctx.signal.reason.code, code)
    if (abandon) assert.deepEqual(answer, { h: 5, abandon: true })
    else assert.equal(answer.err.code, code)
  }
})

test('an activity that finishes all the same is answered with its result', async () => {
  const { runner: running, end } = runner((ctx) => new Promise((resolve) => ctx.signal.addEventListener('abort', () => resolve('finished'))))
  running.start(JOB)
  running.abort({ h: 5, reason: 'shutdown' })
  assert.deepEqual(await end, { h: 5, ok: 'finished' })
})

test('an abort of what has ended or never began is nothing', () => {
  const { runner: running } = runner(() => 1)
  running.abort({ h: 99, reason: 'lost' })
  assert.equal(running.size, 0)
})

test('retries see rising attempts under one idempotency key; a non-retryable name stops them', async (t) => {
  const seen = []
  const { result } = await runOnce(
    t,
    async (ctx) => {
      const value = await ctx.scheduleActivity('flaky', null, { retry: { maxAttempts: 3, baseDelayMs: 0 } })
      const failed = await ctx.all([ctx.scheduleActivity('hopeless', null, { retry: { maxAttempts: 3, nonRetryable: ['Hopeless'] } })])
      return [value, failed[0].err]
    },
    {
      activities: {
        flaky(ctx) {
          seen.push([ctx.attempt, ctx.idempotencyKey])
          if (ctx.attempt < 3) throw new Error('not yet')
          return 'third time'
        },
        hopeless() {
          seen.push('hopeless')
          throw Object.assign(new Error('never'), { name: 'Hopeless' })
        },
      },
    },
  )
  assert.deepEqual(result.output, ['third time', 'never'])
  assert.deepEqual(seen.map((each) => each[0]), [1, 2, 3, 'h'])
  assert.equal(new Set(seen.slice(0, 3).map(([, key]) => key)).size, 1)
})

test('an activity that lost a race is told to stop', async (t) => {
  let stopped
  const isStopped = new Promise((resolve) => (stopped = resolve))
  const { result } = await runOnce(t, (ctx) => ctx.race(ctx.scheduleActivity('slow'), ctx.scheduleActivity('fast')), {
    activities: {
      slow: (ctx) => new Promise((resolve) => ctx.signal.addEventListener('abort', () => resolve(stopped(ctx.signal.reason.code)))),
      fast: async () => 'fast',
    },
  })
  assert.deepEqual(result.output, { index: 1, value: 'fast' })
  assert.equal(await isStopped, 'CANCELLED')
})

test('an activity can talk to the engine through its client', async (t) => {
  const { result } = await runOnce(t, async (ctx) => {
    await ctx.scheduleActivity('poke')
    return await ctx.waitForEvent('poked')
  }, { activities: { poke: (ctx) => ctx.getClient().raiseEvent(ctx.instanceId, 'poked', 'by activity') } })
  assert.equal(result.output, 'by activity')
})

test('log lines of activities and orchestrations name their source, and replay is silent', async (t) => {
  const { subscribe, unsubscribe } = await import('node:diagnostics_channel')
  const records = []
  const listener = (record) => records.push(record)
  subscribe('holdfast:trace', listener)
  t.after(() => unsubscribe('holdfast:trace', listener))
  await runOnce(t, async (ctx) => {
    ctx.traceInfo('begin')
    await ctx.scheduleActivity('work')
    ctx.traceWarn('middle')
    await ctx.scheduleActivity('work')
    ctx.traceError('end')
    ctx.traceDebug('detail')
  }, { cold: true, activities: { work: (ctx) => ctx.traceInfo('working') } })
  assert.deepEqual(records.map(({ message }) => message), ['begin', 'working', 'middle', 'working', 'end', 'detail'])
  const { workerId, ...record } = records[1]
  assert.equal(typeof workerId, 'string')
  assert.deepEqual(record, {
    level: 'info',
    message: 'working',
    source: 'activity',
    name: 'work',
    instanceId: 'one',
    executionId: 1,
    orchestrationName: 'main',
    orchestrationVersion: '1.0.0',
    activityId: 2,
    tag: null,
  })
  assert.deepEqual(records.map(({ level }) => level), ['info', 'info', 'warn', 'info', 'error', 'debug'])
})

test('many activities of one batch are answered together', async (t) => {
  const { result, log } = await runOnce(t, async (ctx) => (await ctx.all(Array.from({ length: 200 }, (_, i) => ctx.scheduleActivity('work', i)))).length, {
    activities: { work: async (ctx, i) => i },
  })
  assert.equal(result.output, 200)
  assert.ok(log.answers.filter(({ activities }) => activities.length > 0).length <= 10)
  assert.ok(log.batches.every(({ activities }) => activities.length <= 64))
})


test('answers that would not fit one text go back in several', async (t) => {
  const large = 'x'.repeat(40 * 1024 * 1024)
  const { result, log } = await runOnce(t, async (ctx) => (await ctx.all([1, 2, 3].map((i) => ctx.scheduleActivity('large', i)))).length, {
    activities: { large: () => large },
  })
  assert.equal(result.output, 3)
  assert.deepEqual(log.answers.filter(({ activities }) => activities.length > 0).map(({ activities }) => activities.length), [1, 1, 1])
})
