// What goes wrong in orchestration code: errors keep their fields, foreign waits are named, neighbours are not disturbed.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { holdfast } from '../support/app.mjs'
import { check, done, driverOf, event, fail, runCold, runWarm, short, START } from '../support/replay.mjs'

const card = { name: 'CardDeclined', message: 'no funds', code: 'E_FUNDS', data: { balance: 12 }, cause: { name: 'TypeError', message: 'deep' }, stack: 'CardDeclined: no funds\n    at bank.js:1' }

test('a failed activity throws an error with the name, message, code, fields and cause of its own', async () => {
  const look = (error) => {
    assert.ok(error instanceof holdfast.ActivityFailedError)
    assert.ok(error instanceof holdfast.HoldfastError)
    assert.ok(error instanceof Error)
    const { name, message, code, balance, activityName, stack, retryable } = error
    const { cause } = error
    assert.ok(cause.cause instanceof TypeError)
    return { name, message, code, balance, activityName, stack, retryable, inner: [cause.name, cause.message, cause.code, cause.balance, cause.cause.message] }
  }
  const { outcome } = await check({
    *generator(ctx) {
      try {
        yield ctx.scheduleActivity('charge')
      } catch (error) {
        return look(error)
      }
    },
    async asynchronous(ctx) {
      return await ctx.scheduleActivity('charge').catch(look)
    },
    turns: [[], [fail(0, card)]],
  })
  assert.deepEqual(outcome.completed.output, {
    name: 'CardDeclined',
    message: 'no funds',
    code: 'E_FUNDS',
    balance: 12,
    activityName: 'charge',
    stack: card.stack,
    retryable: false,
    inner: ['CardDeclined', 'no funds', 'E_FUNDS', 12, 'deep'],
  })
})

test('engine errors come as the class that code branches on', async () => {
  const caught = async (schedule, error) => {
    let seen
    await runWarm(async (ctx) => await schedule(ctx).catch((e) => void (seen = e)), [[], [fail(0, error)]])
    return seen
  }
  const activity = (ctx) => ctx.scheduleActivity('a')
  const child = (ctx) => ctx.scheduleSubOrchestration('kid')
  const timeout = await caught(activity, { name: 'TimeoutError', code: 'TIMEOUT', message: 'too slow' })
  assert.ok(timeout instanceof holdfast.TimeoutError && !(timeout instanceof holdfast.ActivityFailedError))
  const poisoned = await caught(activity, { name: 'PoisonedError', code: 'POISONED', message: 'gave up' })
  assert.ok(poisoned instanceof holdfast.ActivityFailedError)
  assert.equal(poisoned.code, 'POISONED')
  const exists = await caught(child, { name: 'InstanceExistsError', code: 'INSTANCE_EXISTS', message: 'there is one' })
  assert.ok(exists instanceof holdfast.InstanceExistsError)
  const unnamed = await caught(child, { name: 'Error', code: 'INSTANCE_EXISTS', message: 'there is one' })
  assert.deepEqual([unnamed instanceof holdfast.InstanceExistsError, unnamed.name], [true, 'InstanceExistsError'])
  const deeper = await caught(child, { name: 'InstanceExistsError', code: 'INSTANCE_EXISTS', message: 'of its own child', stack: 'there' })
  assert.ok(deeper instanceof holdfast.OrchestrationFailedError)
  const failed = await caught(child, { name: 'RangeError', message: 'kid broke' })
  assert.ok(failed instanceof holdfast.OrchestrationFailedError)
  assert.ok(failed.cause instanceof RangeError)
  assert.deepEqual([failed.orchestrationName, failed.code, failed.message], ['kid', 'ORCHESTRATION_FAILED', 'kid broke'])
})

test('an error that is not caught ends the execution with its whole story', async () => {
  const { outcome } = await check({
    *generator(ctx) {
      yield ctx.scheduleActivity('charge')
    },
    async asynchronous(ctx) {
      await ctx.scheduleActivity('charge')
    },
    turns: [[], [fail(0, card)]],
  })
  const { error } = outcome.failed
  assert.deepEqual([error.name, error.message, error.code, error.data.balance], ['CardDeclined', 'no funds', 'E_FUNDS', 12])
  assert.equal(error.cause.cause.message, 'deep')
  assert.match(error.stack, /bank\.js/)
})

test('anything thrown ends the execution as failed', async () => {
  for (const thrown of ['text', undefined, null, 42, Symbol('s'), { code: 'X' }, () => {}, { get message() { throw new Error('trap') } }]) {
    const { outcome } = await check({
      *generator() {
        throw thrown
      },
      async asynchronous() {
        throw thrown
      },
    })
    assert.equal(typeof outcome.failed.error.message, 'string')
    assert.equal(typeof outcome.failed.error.name, 'string')
  }
})

test('an output that JSON cannot hold fails the execution, naming it', async () => {
  const { outcome } = await check({
    *generator() {
      return { n: 1n }
    },
    async asynchronous() {
      return { n: 1n }
    },
  })
  assert.equal(outcome.failed.error.code, 'INVALID_PAYLOAD')
  assert.match(outcome.failed.error.message, /output of orchestration 'main': the value at \$\.n is a BigInt/)
})

test('a bad argument is thrown at the call and can be caught there', async () => {
  const bad = [
    [(ctx) => ctx.scheduleActivity('charge', { a: [1, NaN] }), /input of activity 'charge'.*\$\.a\[1\].*NaN/],
    [(ctx) => ctx.scheduleActivity(''), /activity name must not be empty/],
    [(ctx) => ctx.scheduleTimer(-1), /delayMs must be a whole number of at least 0/],
    [(ctx) => ctx.scheduleTimer(1.5), /delayMs/],
    [(ctx) => ctx.scheduleTimer('5'), /delayMs/],
    [(ctx) => ctx.startOrchestration('x', 'sub::1'), /reserved sub-orchestration marker/],
    [(ctx) => ctx.startOrchestration('x', 'a::sub::1'), /reserved sub-orchestration marker/],
    [(ctx) => ctx.scheduleSubOrchestrationWithId('x', 'sub::1'), /reserved sub-orchestration marker/],
    [(ctx) => ctx.scheduleSubOrchestrationVersioned('x', 'one'), /not a semantic version/],
    [(ctx) => ctx.scheduleActivityWithRetry('x', 1, { maxAttempts: 0 }), /maxAttempts must be a whole number of at least 1/],
    [(ctx) => ctx.scheduleActivity('x', 1, { retry: { maxAttempt: 2 } }), /maxAttempt is not a field/],
    [(ctx) => ctx.scheduleActivity('x').withTag('t'.repeat(257)), /tag is 257 bytes long/],
    [(ctx) => ctx.race(), /at least one task/],
    [(ctx) => ctx.all([Promise.resolve()]), /argument 0 of ctx\.all is a promise/],
    [(ctx) => ctx.all('x'), /takes an array/],
    [(ctx) => ctx.setCustomStatus({ page: 1 }), /custom status is kept as a text and is an object: give JSON\.stringify/],
    [(ctx) => ctx.setValue('k', { page: 1 }), /KV value of key 'k' is kept as a text and is an object/],
    [(ctx) => ctx.setValue('k', [1, 2]), /KV value of key 'k' is kept as a text/],
    [(ctx) => ctx.setValue('k', () => 1), /KV value of key 'k' is kept as a text/],
    [(ctx) => ctx.setCustomStatus('x'.repeat(300_000)), /custom status/],
  ]
  for (const [act, text] of bad) {
    await runWarm(async (ctx) => {
      assert.throws(() => act(ctx), (error) => error instanceof holdfast.HoldfastError && text.test(error.message))
    }, [[]]).then(({ outcome }) => assert.deepEqual(outcome, { completed: { output: null } }))
  }
})

test('yielding what is not a task fails with a text that says what to yield', async () => {
  for (const [value, word] of [[Promise.resolve(1), 'a promise'], [{ type: 'x' }, 'an object'], [42, 'a number'], [undefined, 'undefined']]) {
    const { outcome } = await runCold(function* () {
      yield value
    }, [[]])
    assert.match(outcome.failed.error.message, new RegExp(`Invalid generator step result: orchestration 'main' yielded ${word}`))
  }
})

test('an async generator is refused', async () => {
  const { outcome } = await runCold(async function* () {}, [[]])
  assert.equal(outcome.failed.error.code, 'INVALID_ORCHESTRATION')
})

test('a wait for a timer of the process is found at once and named', async () => {
  const { outcome } = await runWarm(async () => await sleep(1_000_000, null, { ref: false }), [[]])
  assert.match(outcome.foreign.message, /orchestration 'main' \(instance 'one'\) waits for something that is not a task/)
  assert.match(outcome.foreign.message, /ctx\.scheduleTimer/)
})

test('a foreign wait after a step is found, also in replay', async () => {
  const body = async (ctx) => {
    await ctx.scheduleActivity('a')
    await new Promise(() => {})
  }
  for (const run of [runWarm, runCold]) {
    const { outcome, commands } = await run(body, [[], [done(0), event('e')]])
    assert.ok(outcome.foreign)
    assert.deepEqual(short(commands), ['activity a@0'])
  }
})

test('a promise that needs no outside event is no foreign wait', async () => {
  const { outcome } = await runWarm(async (ctx) => {
    await Promise.resolve()
    await new Promise((resolve) => process.nextTick(resolve))
    await (async () => {})()
    return await ctx.scheduleActivity('a')
  }, [[], [done(0, 1)]])
  assert.deepEqual(outcome, { completed: { output: 1 } })
})

test('a command from outside an activation is warned about and ends the next one', async () => {
  let wake
  const foreign = new Promise((resolve) => (wake = resolve))
  const { turn } = driverOf(async (ctx) => {
    await Promise.race([ctx.waitForEvent('e'), foreign])
    await ctx.scheduleActivity('a')
  })
  const first = await turn({ h: 1, n: 0, f: [], r: 0, start: START })
  assert.equal(first.o, 'waiting')
  const warned = once(process, 'warning')
  wake()
  const [warning] = await warned
  assert.equal(warning.code, 'HOLDFAST_FOREIGN_WAIT')
  const next = await turn({ h: 1, n: 0, f: [event('e')], r: 0 })
  assert.deepEqual([next.n, next.c, Object.keys(next.o)], [0, [], ['foreign']])
})

test('neighbours in a batch go on whatever one of them does', async () => {
  const { driver, replies } = driverOf(async (ctx, input) => {
    if (input === 'throw') throw new Error('mine')
    if (input === 'hang') await new Promise(() => {})
    if (input === 'bad') return 1n
    await ctx.scheduleActivity(input)
    return input
  })
  const inputs = ['throw', 'ok1', 'hang', 'bad', 'ok2']
  await driver.run(inputs.map((input, i) => ({ h: i, n: 0, f: [], r: 0, start: { ...START, input } })))
  const words = replies.sort((a, b) => a.h - b.h).map(({ o }) => (typeof o === 'string' ? o : Object.keys(o)[0]))
  assert.deepEqual(words, ['failed', 'waiting', 'foreign', 'failed', 'waiting'])
})

test('a warm activation of a frame that is not there, or is elsewhere, is answered as diverged', async () => {
  const { turn } = driverOf(async (ctx) => await ctx.scheduleActivity('a'))
  assert.equal((await turn({ h: 9, n: 0, f: [], r: 0 })).o, 'diverged')
  await turn({ h: 1, n: 0, f: [], r: 0, start: START })
  assert.equal((await turn({ h: 1, n: 3, f: [done(0)], r: 0 })).o, 'diverged')
})

test('hostile values that code returns, yields or throws end only that execution', async () => {
  const hostile = () =>
    new Proxy({}, {
      get() { throw new Error('get') },
      has() { throw new Error('has') },
      ownKeys() { throw new Error('ownKeys') },
      getPrototypeOf() { throw new Error('getPrototypeOf') },
    })
  const bodies = [
    () => hostile(),
    function* () {
      yield hostile()
    },
    function* () {
      return hostile()
    },
    async () => hostile(),
    async () => {
      throw hostile()
    },
    async (ctx) => await ctx.all([hostile()]),
  ]
  for (const body of bodies) {
    const { outcome } = await runCold(body, [[]])
    assert.equal(typeof outcome.failed.error.message, 'string')
  }
})
