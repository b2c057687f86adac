// What orchestration code gets wrong most: refused at the call, or named in a warning, with what to write instead.
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { check, done, driverOf, runWarm, START } from '../support/replay.mjs'

/** The error that the code ends with. */
async function failureOf(body) {
  const { outcome } = await runWarm(body, [[]])
  return outcome.failed.error
}

test('race takes arguments, all takes an array, and each says how it is written', async () => {
  const race = await failureOf(async (ctx) => await ctx.race([ctx.scheduleTimer(1), ctx.scheduleTimer(2)]))
  assert.match(race.message, /ctx\.race\(a, b\)/)
  const all = await failureOf(async (ctx) => await ctx.all(ctx.scheduleTimer(1), ctx.scheduleTimer(2)))
  assert.match(all.message, /ctx\.all\(\[a, b\]\)/)
  const two = await failureOf(async (ctx) => await ctx.all([ctx.scheduleTimer(1)], [ctx.scheduleTimer(2)]))
  assert.match(two.message, /ctx\.all\(\[a, b\]\)/)
  assert.deepEqual([race.code, all.code, two.code], ['INVALID_ARGUMENT', 'INVALID_ARGUMENT', 'INVALID_ARGUMENT'])
})

test('an array or object of tasks as a part is refused with the place of the task', async () => {
  const nested = await failureOf(async (ctx) => await ctx.all([ctx.scheduleTimer(1), [1, { slow: ctx.scheduleTimer(2) }]]))
  assert.match(nested.message, /argument 1 of ctx\.all is an array that holds a task at \$\[1\]\.slow/)
  const plain = await runWarm(async (ctx) => await ctx.all([[1, 2], { a: 1 }]), [[]])
  assert.deepEqual(plain.outcome.completed.output, [{ ok: [1, 2] }, { ok: { a: 1 } }])
})

test('a task in an input, an output or a child input is refused with its path', async () => {
  const cases = [
    [async (ctx) => await ctx.scheduleActivity('a', { list: [1, ctx.scheduleTimer(1)] }), /input of activity 'a': the value at \$\.list\[1\] is a task/],
    [async (ctx) => await ctx.scheduleSubOrchestration('c', ctx.scheduleTimer(1)), /input of orchestration 'c' is a task/],
    [async (ctx) => ({ rest: { 'odd key': ctx.scheduleTimer(1) } }), /output of orchestration 'main': the value at \$\.rest\["odd key"\] is a task/],
    [async (ctx) => await ctx.continueAsNew([ctx.scheduleTimer(1)]), /input of continueAsNew: the value at \$\[0\] is a task/],
  ]
  for (const [body, message] of cases) {
    const error = await failureOf(body)
    assert.match(error.message, message)
    assert.equal(error.code, 'INVALID_PAYLOAD')
  }
})

test('unknown options of an activity are refused by name', async () => {
  const error = await failureOf(async (ctx) => await ctx.scheduleActivity('a', 1, { retries: 3 }))
  assert.match(error.message, /options of activity 'a': there is no option 'retries'; there are sessionId, tag/)
  const text = await failureOf(async (ctx) => await ctx.scheduleActivity('a', 1, 'tag'))
  assert.match(text.message, /must be an object, not a string/)
  const fine = await runWarm(async (ctx) => await ctx.scheduleActivity('a', 1, { sessionId: 's', tag: undefined }), [[], [done(0)]])
  assert.deepEqual(fine.outcome, { completed: { output: null } })
})

/** The warnings of one run. */
async function warningsOf(act) {
  const lines = []
  const listen = (record) => record.level === 'warn' && lines.push(record.message)
  subscribe('holdfast:trace', listen)
  try {
    await act()
  } finally {
    unsubscribe('holdfast:trace', listen)
  }
  return lines
}

test('steps that were made and never awaited are named once the code returns', async () => {
  const body = async (ctx) => {
    ctx.scheduleActivity('forgotten')
    ctx.all([ctx.scheduleTimer(7), ctx.scheduleTimer(8)])
    ctx.continueAsNew(1)
    await ctx.scheduleActivity('seen')
    return 'done'
  }
  const [line, ...others] = await warningsOf(() => runWarm(body, [[], [done(0)]]))
  assert.match(line, /never awaited or yielded, so they did not happen: activity 'forgotten', all of 2, continueAsNew$/)
  assert.deepEqual(others, [])
  const generator = function* (ctx) {
    ctx.scheduleTimer(5)
    yield ctx.scheduleActivity('seen')
  }
  assert.match((await warningsOf(() => runWarm(generator, [[], [done(0)]])))[0], /timer of 5 ms$/)
})

test('what a race did not need, and what a replay repeats, is no reason to warn', async () => {
  const raced = async (ctx) => await ctx.race(1, ctx.scheduleTimer(5))
  assert.deepEqual(await warningsOf(() => runWarm(raced, [[]])), [])
  const replayed = async (ctx) => {
    ctx.scheduleTimer(5)
    await ctx.scheduleActivity('a')
  }
  const cold = { h: 1, n: 0, f: [done(0)], r: 1, start: { ...START, replaying: true } }
  assert.deepEqual(await warningsOf(() => driverOf(replayed).turn(cold)), [])
})

test('values of the context are usable as they are, yielded, awaited, and inside all and race', async () => {
  const shape = ([guid, now, dice, all, race]) => {
    assert.match(guid, /^[0-9a-f-]{36}$/)
    assert.deepEqual([now, typeof dice], [1000, 'number'])
    assert.deepEqual(all, [{ ok: all[0].ok }, { ok: 1000 }, { ok: all[2].ok }])
    return [all[0].ok.length, race]
  }
  const { outcome } = await check({
    *generator(ctx) {
      const parts = [yield ctx.newGuid(), yield ctx.utcNow(), yield ctx.random()]
      return shape([...parts, yield ctx.all([ctx.newGuid(), ctx.utcNow(), ctx.random()]), yield ctx.race(ctx.utcNow(), ctx.scheduleTimer(1))])
    },
    async asynchronous(ctx) {
      const parts = [await ctx.newGuid(), ctx.utcNow(), await ctx.random()]
      return shape([...parts, await ctx.all([ctx.newGuid(), ctx.utcNow(), ctx.random()]), await ctx.race(ctx.utcNow(), ctx.scheduleTimer(1))])
    },
  })
  assert.deepEqual(outcome, { completed: { output: [36, { index: 0, value: 1000 }] } })
})
