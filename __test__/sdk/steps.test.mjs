// The driver, rule by rule: a generator and an async function, warm and cold, give the same commands at the same steps.
// length: one rule after the other of one driver, a few lines each.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cancel, check, done, driverOf, event, queue, runCold, runWarm, short, START } from '../support/replay.mjs'

test('a sequence gives one command after each result', async () => {
  const { commands, outcome } = await check({
    *generator(ctx) {
      const a = yield ctx.scheduleActivity('a', 1)
      return yield ctx.scheduleActivity('b', a)
    },
    async asynchronous(ctx) {
      const a = await ctx.scheduleActivity('a', 1)
      return await ctx.scheduleActivity('b', a)
    },
    turns: [[], [done(0, 'x')], [done(1, { deep: [1, 2] })]],
  })
  assert.deepEqual(commands, [{ activity: { step: 0, name: 'a', input: 1 } }, { activity: { step: 1, name: 'b', input: 'x' } }])
  assert.deepEqual(outcome, { completed: { output: { deep: [1, 2] } } })
})

test('nothing is asked for before a task is yielded or awaited', async () => {
  const { commands } = await check({
    *generator(ctx) {
      ctx.scheduleActivity('never')
      const later = ctx.scheduleActivity('later')
      yield ctx.scheduleActivity('first')
      yield later
    },
    async asynchronous(ctx) {
      ctx.scheduleActivity('never')
      const later = ctx.scheduleActivity('later')
      await ctx.scheduleActivity('first')
      await later
    },
    turns: [[], [done(0)]],
  })
  assert.deepEqual(short(commands), ['activity first@0', 'activity later@1'])
})

test('options of an activity cross with its command', async () => {
  const { commands } = await check({
    *generator(ctx) {
      const retry = { maxAttempts: 4, backoff: 'fixed', nonRetryable: ['CardDeclined'] }
      yield ctx.scheduleActivity('a', 1, { sessionId: 's', tag: 'gpu', retry, timeoutMs: 500 })
    },
  })
  assert.deepEqual(commands[0].activity, {
    step: 0,
    name: 'a',
    input: 1,
    tag: 'gpu',
    session: 's',
    retry: { maxAttempts: 4, backoff: 'fixed', nonRetryable: ['CardDeclined'] },
    timeoutMs: 500,
  })
})

test('the backoff words of scheduleActivityWithRetry stand for their delays', async () => {
  const policy = async (retry) => {
    const { commands } = await check({
      *generator(ctx) {
        yield ctx.scheduleActivityWithRetry('a', null, retry)
      },
    })
    return commands[0].activity.retry
  }
  const common = { maxDelayMs: 30_000, jitterPercent: 0, maxAttempts: 3 }
  assert.deepEqual(await policy({ maxAttempts: 3 }), { baseDelayMs: 100, ...common, backoff: 'exponential' })
  assert.deepEqual(await policy({ maxAttempts: 3, backoff: 'exponential' }), { baseDelayMs: 100, ...common, backoff: 'exponential' })
  assert.deepEqual(await policy({ maxAttempts: 3, backoff: 'fixed' }), { baseDelayMs: 1000, ...common, backoff: 'fixed' })
  assert.deepEqual(await policy({ maxAttempts: 3, backoff: 'whatever' }), { baseDelayMs: 100, ...common, backoff: 'linear' })
})

test('withTag sets the tag and gives the same task', async () => {
  const { commands } = await check({
    *generator(ctx) {
      const task = ctx.scheduleActivity('a')
      assert.equal(task.withTag('gpu'), task)
      assert.equal(task.tag, 'gpu')
      yield task
    },
  })
  assert.equal(commands[0].activity.tag, 'gpu')
})

test('an event goes to the oldest open wait of its name, else to the mailbox', async () => {
  const { commands, outcome } = await check({
    *generator(ctx) {
      yield ctx.scheduleTimer(1)
      const early = yield ctx.waitForEvent('e')
      const [x, y] = yield ctx.all([ctx.waitForEvent('e'), ctx.waitForEvent('e')])
      return [early, x.ok, y.ok, yield ctx.waitForEvent('f')]
    },
    async asynchronous(ctx) {
      await ctx.scheduleTimer(1)
      const early = await ctx.waitForEvent('e')
      const [x, y] = await ctx.all([ctx.waitForEvent('e'), ctx.waitForEvent('e')])
      return [early, x.ok, y.ok, await ctx.waitForEvent('f')]
    },
    turns: [[], [event('e', 1), event('f', 'F'), done(0)], [event('e', 2), event('e', 3)]],
  })
  assert.deepEqual(short(commands), ['timer 1@0', 'event e@3', 'event e@3', 'event e@3', 'event f@5'])
  assert.deepEqual(outcome, { completed: { output: [1, 2, 3, 'F'] } })
})

test('a wait that lost a race takes no message', async () => {
  const { outcome } = await check({
    *generator(ctx) {
      yield ctx.race(ctx.dequeueEvent('q'), ctx.scheduleTimer(1))
      yield ctx.scheduleTimer(2)
      return yield ctx.dequeueEvent('q')
    },
    async asynchronous(ctx) {
      await ctx.race(ctx.dequeueEvent('q'), ctx.scheduleTimer(1))
      await ctx.scheduleTimer(2)
      return await ctx.dequeueEvent('q')
    },
    turns: [[], [done(1), queue('q', 'kept')], [done(3)]],
  })
  assert.deepEqual(outcome, { completed: { output: 'kept' } })
})

test('messages carried over are read first, in their order', async () => {
  const carried = [
    { kind: 'queue', name: 'q', data: 1 },
    { kind: 'event', name: 'q', data: 'event' },
    { kind: 'queue', name: 'q', data: 2 },
  ]
  const { outcome } = await check({
    *generator(ctx) {
      return [yield ctx.dequeueEvent('q'), yield ctx.dequeueEvent('q'), yield ctx.waitForEvent('q'), yield ctx.dequeueEvent('q')]
    },
    async asynchronous(ctx) {
      return [await ctx.dequeueEvent('q'), await ctx.dequeueEvent('q'), await ctx.waitForEvent('q'), await ctx.dequeueEvent('q')]
    },
    turns: [[queue('q', 3)]],
    start: { carried },
  })
  assert.deepEqual(outcome, { completed: { output: [1, 2, 'event', 3] } })
})

test('a thousand buffered messages are read in one activation', async () => {
  const facts = Array.from({ length: 1000 }, (_, i) => queue('q', i))
  const { outcome, commands } = await check({
    *generator(ctx) {
      let sum = 0
      yield ctx.scheduleTimer(1)
      for (let i = 0; i < 1000; i++) sum += yield ctx.dequeueEvent('q')
      return sum
    },
    async asynchronous(ctx) {
      let sum = 0
      await ctx.scheduleTimer(1)
      for (let i = 0; i < 1000; i++) sum += await ctx.dequeueEvent('q')
      return sum
    },
    turns: [[...facts, done(0)]],
  })
  assert.equal(outcome.completed.output, 499_500)
  assert.equal(commands.length, 1001)
})

test('a detached start is ready at once and a child is waited for', async () => {
  const { commands, outcome } = await check({
    *generator(ctx) {
      const nothing = yield ctx.startOrchestration('side', 'side-1', { a: 1 })
      yield ctx.startOrchestrationVersioned('side', '2.0.0', 'side-2')
      const child = yield ctx.scheduleSubOrchestration('kid', 1)
      yield ctx.scheduleSubOrchestrationVersionedWithId('kid', '1.2.3', 'kid-1', 2)
      return [nothing, child]
    },
    async asynchronous(ctx) {
      const nothing = await ctx.startOrchestration('side', 'side-1', { a: 1 })
      await ctx.startOrchestrationVersioned('side', '2.0.0', 'side-2')
      const child = await ctx.scheduleSubOrchestration('kid', 1)
      await ctx.scheduleSubOrchestrationVersionedWithId('kid', '1.2.3', 'kid-1', 2)
      return [nothing, child]
    },
    turns: [[], [done(2, 'grown')], [done(3)]],
  })
  assert.deepEqual(commands, [
    { detached: { step: 0, name: 'side', instance: 'side-1', input: { a: 1 } } },
    { detached: { step: 0, name: 'side', version: '2.0.0', instance: 'side-2', input: null } },
    { child: { step: 0, name: 'kid', input: 1 } },
    { child: { step: 1, name: 'kid', version: '1.2.3', instance: 'kid-1', input: 2 } },
  ])
  assert.deepEqual(outcome, { completed: { output: [null, 'grown'] } })
})

test('continueAsNew ends the execution; code after it does not run', async () => {
  let isReached = false
  const { outcome, commands } = await check({
    *generator(ctx) {
      yield ctx.continueAsNew({ n: 2 })
      isReached = true
    },
    async asynchronous(ctx) {
      await ctx.continueAsNew({ n: 2 })
      isReached = true
    },
  })
  assert.deepEqual([outcome, commands, isReached], [{ continued: { input: { n: 2 } } }, [], false])
  const versioned = await check({
    *generator(ctx) {
      return ctx.continueAsNewVersioned(1, '2.0.0')
    },
    async asynchronous(ctx) {
      return ctx.continueAsNewVersioned(1, '2.0.0')
    },
  })
  assert.deepEqual(versioned.outcome, { continued: { input: 1, version: '2.0.0' } })
})

test('a returned task counts as awaited', async () => {
  const { outcome } = await check({
    *generator(ctx) {
      return ctx.scheduleActivity('a')
    },
    async asynchronous(ctx) {
      return ctx.scheduleActivity('a')
    },
    turns: [[], [done(0, 5)]],
  })
  assert.deepEqual(outcome, { completed: { output: 5 } })
})

test('yield* gives the result of a task', async () => {
  const { outcome } = await check({
    *generator(ctx) {
      const a = yield* ctx.scheduleActivity('a')
      return a + 1
    },
    turns: [[], [done(0, 5)]],
  })
  assert.deepEqual(outcome, { completed: { output: 6 } })
})

test('custom status is a command in its place and is read back at once', async () => {
  const { commands, outcome } = await check({
    *generator(ctx) {
      const before = ctx.getCustomStatus()
      ctx.setCustomStatus('half')
      yield ctx.scheduleActivity('a')
      const during = ctx.getCustomStatus()
      ctx.resetCustomStatus()
      return [before, during, ctx.getCustomStatus()]
    },
    async asynchronous(ctx) {
      const before = ctx.getCustomStatus()
      ctx.setCustomStatus('half')
      await ctx.scheduleActivity('a')
      const during = ctx.getCustomStatus()
      ctx.resetCustomStatus()
      return [before, during, ctx.getCustomStatus()]
    },
    turns: [[], [done(1)]],
    start: { customStatus: 'old' },
  })
  assert.deepEqual(commands.map((c) => Object.keys(c)[0]), ['status', 'activity', 'status'])
  assert.deepEqual([commands[0].status, commands[2].status], [{ step: 0, status: 'half' }, { step: 1, status: null }])
  assert.deepEqual(outcome.completed.output, ['old', 'half', null])
})

test('time is that of the last fact, and chance is the same in every run, yielded or not', async () => {
  const { outcome } = await check({
    *generator(ctx) {
      const [t0, guid, chance] = [ctx.utcNow(), ctx.newGuid(), yield ctx.random()]
      yield ctx.scheduleTimer(1)
      return { t0, t1: yield ctx.utcNow(), guid, chance, guid2: yield ctx.newGuid() }
    },
    async asynchronous(ctx) {
      const [t0, guid, chance] = [ctx.utcNow(), ctx.newGuid(), await ctx.random()]
      await ctx.scheduleTimer(1)
      return { t0, t1: await ctx.utcNow(), guid, chance, guid2: ctx.newGuid() }
    },
    turns: [[], [{ t: 'done', at: 4321, seq: 0, value: null }]],
  })
  const { t0, t1, guid, guid2, chance } = outcome.completed.output
  assert.deepEqual([t0, t1], [1000, 4321])
  for (const id of [guid, guid2]) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  assert.notEqual(guid, guid2)
  assert.ok(chance >= 0 && chance < 1)
})

test('another seed gives other numbers', async () => {
  const body = async (ctx) => ctx.newGuid()
  const guids = new Set()
  for (const seed of ['0', '1', '2', 'ffffffffffffffff', '10000000000000000'.slice(1)]) {
    guids.add((await runWarm(body, [[]], { seed })).outcome.completed.output)
  }
  assert.equal(guids.size, 4, 'equal seeds, equal numbers; the last is the first again')
})

test('code that ends before the last fact says how many facts it took', async () => {
  const { applied, outcome } = await check({
    *generator(ctx) {
      yield ctx.waitForEvent('e')
      return 'early'
    },
    async asynchronous(ctx) {
      await ctx.waitForEvent('e')
      return 'early'
    },
    turns: [[event('x'), event('e'), event('e'), event('e')]],
  })
  assert.deepEqual([applied, outcome], [2, { completed: { output: 'early' } }])
})

test('a fact for a command that was not given means that code and history part', async () => {
  const { outcome } = await check({
    *generator(ctx) {
      yield ctx.scheduleActivity('a')
    },
    async asynchronous(ctx) {
      await ctx.scheduleActivity('a')
    },
    turns: [[done(1)]],
  })
  assert.equal(outcome, 'diverged')
})

test('a result of a step that lost a race changes nothing', async () => {
  const { outcome } = await check({
    *generator(ctx) {
      yield ctx.race(ctx.scheduleActivity('slow'), ctx.scheduleTimer(1))
      return yield ctx.scheduleActivity('next')
    },
    async asynchronous(ctx) {
      await ctx.race(ctx.scheduleActivity('slow'), ctx.scheduleTimer(1))
      return await ctx.scheduleActivity('next')
    },
    turns: [[], [done(1)], [done(0, 'late'), done(3, 'ok')]],
  })
  assert.deepEqual(outcome, { completed: { output: 'ok' } })
})

test('isReplaying is true exactly where the code has been before', async () => {
  const seen = []
  const body = function* (ctx) {
    seen.push(ctx.isReplaying)
    yield ctx.scheduleActivity('a')
    seen.push(ctx.isReplaying)
    yield ctx.scheduleActivity('b')
    seen.push(ctx.isReplaying)
  }
  const facts = [done(0), done(1)]
  await driverOf(body).turn({ h: 1, n: 0, f: facts, r: 1, start: { ...START, replaying: true } })
  assert.deepEqual(seen.splice(0), [true, true, false])
  await driverOf(async (ctx) => {
    seen.push(ctx.isReplaying)
    await ctx.scheduleActivity('a')
    seen.push(ctx.isReplaying)
    await ctx.scheduleActivity('b')
    seen.push(ctx.isReplaying)
  }).turn({ h: 1, n: 0, f: facts, r: 1, start: { ...START, replaying: true } })
  assert.deepEqual(seen, [true, true, false])
})

test('what the context knows about itself', async () => {
  const { outcome } = await runCold(async (ctx, input) => {
    const { instanceId, executionId, orchestrationName, orchestrationVersion, parentInstanceId } = ctx
    return { instanceId, executionId, orchestrationName, orchestrationVersion, parentInstanceId, input }
  }, [[]], { parent: 'mother', input: { n: 1 } })
  assert.deepEqual(outcome.completed.output, {
    instanceId: 'one',
    executionId: 1,
    orchestrationName: 'main',
    orchestrationVersion: '1.0.0',
    parentInstanceId: 'mother',
    input: { n: 1 },
  })
})

test('cancel is thrown at the wait; what is asked for afterwards is carried out', async () => {
  const seen = []
  const { commands, outcome, applied } = await check({
    *generator(ctx) {
      try {
        yield ctx.all([ctx.scheduleActivity('a'), ctx.race(ctx.waitForEvent('e'), ctx.scheduleTimer(9))])
      } catch (error) {
        seen.push([error.code, error === ctx.cancellation, ctx.isCancelled])
        ctx.setCustomStatus('cleaning up')
        const [{ ok }, { ok: race }] = yield ctx.all([ctx.scheduleActivity('undo'), ctx.race(ctx.scheduleActivity('slow'), ctx.waitForEvent('e'))])
        throw new Error(`${ok} ${race.value}`)
      }
    },
    async asynchronous(ctx) {
      try {
        await ctx.all([ctx.scheduleActivity('a'), ctx.race(ctx.waitForEvent('e'), ctx.scheduleTimer(9))])
      } catch (error) {
        seen.push([error.code, error === ctx.cancellation, ctx.isCancelled])
        ctx.setCustomStatus('cleaning up')
        const [{ ok }, { ok: race }] = await ctx.all([ctx.scheduleActivity('undo'), ctx.race(ctx.scheduleActivity('slow'), ctx.waitForEvent('e'))])
        throw new Error(`${ok} ${race.value}`)
      }
    },
    // The event after the request is for the wait after it, not for the one that was cancelled.
    turns: [[], [cancel('too late'), event('e', 'E')], [done(4, 'undone')]],
  })
  assert.deepEqual(short(commands), ['activity a@0', 'event e@0', 'timer 9@0', 'status cleaning up@1', 'activity undo@1', 'activity slow@1', 'event e@1', 'cancel 5@2'])
  assert.equal(applied, 3)
  assert.equal(outcome.failed.error.message, 'undone E')
  assert.deepEqual(seen, Array(4).fill(['CANCELLED', true, true]))
})

test('a loop that swallows a cancellation waits for its next step', async () => {
  const { commands, outcome } = await check({
    *generator(ctx) {
      for (;;) {
        try {
          yield ctx.scheduleTimer(1)
        } catch {}
      }
    },
    async asynchronous(ctx) {
      for (;;) {
        try {
          await ctx.scheduleTimer(1)
        } catch {}
      }
    },
    turns: [[], [cancel()], [done(1)]],
  })
  assert.deepEqual(short(commands), ['timer 1@0', 'timer 1@1', 'timer 1@2'])
  assert.equal(outcome, 'waiting')
})

test('an evicted frame is forgotten without running its finally blocks', async () => {
  let isCleaned = false
  const { driver, turn } = driverOf(function* (ctx) {
    try {
      yield ctx.scheduleActivity('a')
    } finally {
      isCleaned = true
    }
  })
  await turn({ h: 1, n: 0, f: [], r: 0, start: START })
  assert.equal(driver.size, 1)
  driver.evict([1])
  assert.deepEqual([driver.size, isCleaned], [0, false])
})

test('a frame that ended is not kept', async () => {
  const { driver, turn } = driverOf(async () => 1)
  await turn({ h: 1, n: 0, f: [], r: 0, start: START })
  assert.equal(driver.size, 0)
})

test('an activity ten thousand times, then replayed cold, in well under a second', async () => {
  const count = 10_000
  const facts = Array.from({ length: count }, (_, i) => done(i, i))
  for (const body of [
    function* (ctx) {
      for (let i = 0; i < count; i++) yield ctx.scheduleActivity('a', i)
    },
    async (ctx) => {
      for (let i = 0; i < count; i++) await ctx.scheduleActivity('a', i)
    },
  ]) {
    const from = performance.now()
    const { outcome } = await runCold(body, [facts])
    assert.deepEqual(outcome, { completed: { output: null } })
    assert.ok(performance.now() - from < 5000, 'generous for a busy machine')
  }
})

test('facts that let no code run need no round of their own', async () => {
  const count = 20_000
  let rounds = 0
  const counting = globalThis.setImmediate
  const { turn } = driverOf(async (ctx) => (await ctx.all(Array.from({ length: count }, (_, i) => ctx.scheduleActivity('a', i)))).length)
  globalThis.setImmediate = (...args) => (rounds++, counting(...args))
  try {
    const { o } = await turn({ h: 1, n: 0, f: Array.from({ length: count }, (_, i) => done(i)), r: count, start: START })
    assert.deepEqual(o, { completed: { output: count } })
  } finally {
    globalThis.setImmediate = counting
  }
  assert.equal(rounds, 2, 'one after the start, one after the last result')
})
