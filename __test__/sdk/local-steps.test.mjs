// Local steps: run in place, recorded like activities, never run again by a replay.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { cancel, check, done, driverOf, runWarm, short, START } from '../support/replay.mjs'

// Timers of steps hold no process; with a real engine its open pull does.
const pull = setInterval(() => {}, 60_000)
after(() => clearInterval(pull))

test('a step runs once, its result is a fact of the same turn, and a replay does not run it', async () => {
  let runs = 0
  const step = () => ({ runs: ++runs, when: new Date(0) })
  const { commands, outcome } = await check({
    *generator(ctx) {
      const first = yield* ctx.step('one', step)
      const second = yield ctx.step('two', () => first.when)
      return [typeof first.runs, second, yield ctx.scheduleActivity('a')]
    },
    async asynchronous(ctx) {
      const first = await ctx.step('one', step)
      const second = await ctx.step('two', () => first.when)
      return [typeof first.runs, second, await ctx.scheduleActivity('a')]
    },
    turns: [[], [done(2, 'A')]],
  })
  assert.equal(runs, 2, 'once for the generator, once for the async function')
  assert.deepEqual(short(commands), ['local one@0', 'local two@1', 'activity a@2'])
  assert.deepEqual(outcome, { completed: { output: ['number', '1970-01-01T00:00:00.000Z', 'A'] } })
})

test('steps side by side, in all and race; a loser is told to stop and not waited for', async () => {
  let stopped = 0
  const forever = ({ signal }) =>
    new Promise((resolve, reject) => signal.addEventListener('abort', () => (stopped++, reject(signal.reason))))
  const { commands, outcome } = await check({
    *generator(ctx) {
      const pair = yield ctx.all([ctx.step('a', () => 1), ctx.step('b', async () => Promise.reject(new RangeError('b broke')))])
      return [pair, yield ctx.race(ctx.step('slow', forever), ctx.step('quick', () => 'q'))]
    },
    async asynchronous(ctx) {
      const pair = await ctx.all([ctx.step('a', () => 1), ctx.step('b', async () => Promise.reject(new RangeError('b broke')))])
      return [pair, await ctx.race(ctx.step('slow', forever), ctx.step('quick', () => 'q'))]
    },
  })
  assert.deepEqual(short(commands), ['local a@0', 'local b@0', 'local slow@2', 'local quick@2', 'cancel 2@3'])
  assert.deepEqual(outcome, { completed: { output: [[{ ok: 1 }, { err: 'b broke' }], { index: 1, value: 'q' }] } })
  assert.equal(stopped, 2)
})

test('a step is tried again in place under one key; what is not retryable is not', async () => {
  const tries = []
  const flaky = ({ attempt, idempotencyKey, name }) => {
    tries.push([name, attempt, idempotencyKey])
    if (attempt < 3) throw new Error('not yet')
    return 'ok'
  }
  const retry = { maxAttempts: 3, baseDelayMs: 1, jitterPercent: 0 }
  const warm = await runWarm(async (ctx) => await ctx.step('flaky', flaky, { retry }), [[]])
  assert.deepEqual(warm.outcome, { completed: { output: 'ok' } })
  assert.deepEqual(tries, [1, 2, 3].map((attempt) => ['flaky', attempt, 'one:1:0']))
  let runs = 0
  const final = () => {
    runs += 1
    throw Object.assign(new Error('no'), { retryable: false, code: 'E_NO' })
  }
  const failed = await runWarm(async (ctx) => await ctx.step('final', final, { retry }), [[]])
  assert.deepEqual([runs, failed.outcome.failed.error.code, failed.outcome.failed.error.message], [1, 'E_NO', 'no'])
  const slow = await runWarm(async (ctx) => await ctx.step('slow', () => new Promise(() => {}), { retry: { maxAttempts: 1, timeoutMs: 5 } }), [[]])
  assert.match(slow.outcome.failed.error.message, /step 'slow' took longer than 5 ms/)
})

test('another activation of the batch does not wait for a step', async () => {
  const { driver, replies } = driverOf(async (ctx, input) => (input === null ? await ctx.step('slow', () => release) : 'quick'))
  let open
  const release = new Promise((resolve) => (open = resolve))
  const batch = [
    { h: 1, n: 0, f: [], r: 0, start: START },
    { h: 2, n: 0, f: [], r: 0, start: { ...START, input: 1 } },
  ]
  const all = driver.run(batch)
  while (replies.length === 0) await new Promise(setImmediate)
  assert.deepEqual(replies.map(({ h }) => h), [2])
  open('late')
  await all
  assert.deepEqual(replies[1], { h: 1, n: 1, c: [{ local: { step: 0, name: 'slow' } }], l: [{ seq: 0, at: 1000, ok: 'late' }], o: { completed: { output: 'late' } } })
})

test('a turn that is given up tells its steps to stop and answers nothing', async () => {
  let reason
  const body = async (ctx) =>
    await ctx.step('slow', ({ signal }) => new Promise((resolve, reject) => signal.addEventListener('abort', () => reject((reason = signal.reason)))))
  const { driver, replies } = driverOf(body)
  const all = driver.run([{ h: 1, n: 0, f: [], r: 0, start: START }])
  await new Promise(setImmediate)
  driver.evict([1])
  await all
  assert.deepEqual([replies, driver.size, reason.code], [[], 0, 'CANCELLED'])
})

test('a command that is given while a step runs is noticed as foreign', async () => {
  const body = async (ctx) => {
    const loops = (n, then) => (n === 0 ? then() : setImmediate(() => loops(n - 1, then)))
    loops(3, () => ctx.scheduleActivity('late').catch(() => {}))
    await ctx.step('slow', () => new Promise((resolve) => loops(6, resolve)))
  }
  const { outcome } = await runWarm(body, [[]])
  assert.match(outcome.foreign.message, /waits for something that is not a task/)
})

test('a step that was asked for before a cancellation of the same turn does not run; one to clean up does', async () => {
  let ran = []
  const { commands } = await check({
    async asynchronous(ctx) {
      await ctx.scheduleActivity('a')
      try {
        await ctx.step('never', () => ran.push('never'))
      } finally {
        await ctx.step('undo', () => ran.push('undo'))
      }
    },
    turns: [[], [done(0), cancel()]],
  })
  assert.deepEqual(short(commands), ['activity a@0', 'local never@1', 'local undo@2'])
  assert.deepEqual(ran, ['undo'])
})

test('a result that JSON cannot hold fails the step; unknown options and reserved names are refused', async () => {
  const bad = await runWarm(async (ctx) => await ctx.step('big', () => 1n), [[]])
  assert.match(bad.outcome.failed.error.message, /result of step 'big' is a BigInt/)
  const option = await runWarm(async (ctx) => await ctx.step('x', () => 1, { retries: 3 }), [[]])
  assert.match(option.outcome.failed.error.message, /there is no option 'retries'; there are retry/)
  const name = await runWarm(async (ctx) => await ctx.step('__holdfast:x', () => 1), [[]])
  assert.match(name.outcome.failed.error.message, /reserved/)
})

test('the context cannot be used inside a step: not at its start, not after an await', async () => {
  const uses = [
    (ctx) => ctx.scheduleActivity('a'),
    (ctx) => ctx.setCustomStatus('x'),
    (ctx) => ctx.setValue('k', 'v'),
    (ctx) => ctx.newGuid(),
    (ctx) => ctx.random(),
    (ctx) => ctx.continueAsNew(1),
    (ctx) => ctx.step('inner', () => 1),
  ]
  for (const use of uses) {
    for (const first of [() => undefined, () => new Promise((resolve) => setImmediate(resolve))]) {
      const { commands, outcome } = await runWarm(async (ctx) => {
        const [{ err }] = await ctx.all([
          ctx.step('outer', async () => {
            await first()
            use(ctx)
          }),
        ])
        return [err, await ctx.step('later', () => 'fine')]
      }, [[]])
      const [err, later] = outcome.completed.output
      assert.match(err, /^the context of the orchestration was used inside its step 'outer'/)
      assert.equal(later, 'fine')
      assert.deepEqual(short(commands), ['local outer@0', 'local later@1'])
    }
  }
})

test('the context of another orchestration is nobody\'s business', async () => {
  let other
  await runWarm(async (ctx) => {
    other = ctx
    await ctx.waitForEvent('never')
  }, [[]])
  const { outcome } = await runWarm(async (ctx) => await ctx.step('reads', () => other.instanceId), [[]])
  assert.deepEqual(outcome, { completed: { output: 'one' } })
})
