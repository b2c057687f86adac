// Steps together: all, race, nested, used again, and the Promise functions over tasks.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { check, done, event, fail, queue, runWarm, short } from '../support/replay.mjs'

test('all asks for its parts in order and answers in order, errors as text with the error beside it', async () => {
  const { commands, outcome } = await check({
    *generator(ctx) {
      const results = yield ctx.all([ctx.scheduleActivity('a'), ctx.scheduleActivity('b'), ctx.scheduleTimer(5), ctx.waitForEvent('e')])
      assert.equal(results[1].reason.code, 'E_B')
      return results
    },
    async asynchronous(ctx) {
      return await ctx.all([ctx.scheduleActivity('a'), ctx.scheduleActivity('b'), ctx.scheduleTimer(5), ctx.waitForEvent('e')])
    },
    turns: [[], [done(2)], [fail(1, { message: 'b broke', code: 'E_B' }), event('e', 7)], [done(0, 'A')]],
  })
  assert.deepEqual(short(commands), ['activity a@0', 'activity b@0', 'timer 5@0', 'event e@0'])
  assert.deepEqual(outcome, { completed: { output: [{ ok: 'A' }, { err: 'b broke' }, { ok: null }, { ok: 7 }] } })
})

test('an empty all is ready at once', async () => {
  const { outcome } = await check({
    *generator(ctx) {
      return yield ctx.all([])
    },
    async asynchronous(ctx) {
      return await ctx.all([])
    },
  })
  assert.deepEqual(outcome, { completed: { output: [] } })
})

test('race gives the first and takes the others back in argument order before the code goes on', async () => {
  const { commands, outcome } = await check({
    *generator(ctx) {
      const won = yield ctx.race(ctx.scheduleActivity('a'), ctx.scheduleTimer(9), ctx.waitForEvent('e'))
      yield ctx.scheduleActivity('after')
      return won
    },
    async asynchronous(ctx) {
      const won = await ctx.race(ctx.scheduleActivity('a'), ctx.scheduleTimer(9), ctx.waitForEvent('e'))
      await ctx.scheduleActivity('after')
      return won
    },
    turns: [[], [done(1)], [done(5)]],
  })
  assert.deepEqual(short(commands), ['activity a@0', 'timer 9@0', 'event e@0', 'cancel 0@1', 'cancel 2@1', 'activity after@1'])
  assert.deepEqual(outcome, { completed: { output: { index: 1, value: null } } })
})

test('a failed part wins a race with its text and a mark', async () => {
  const { outcome } = await check({
    *generator(ctx) {
      return yield ctx.race(ctx.scheduleActivity('a'), ctx.scheduleTimer(9))
    },
    async asynchronous(ctx) {
      return await ctx.race(ctx.scheduleActivity('a'), ctx.scheduleTimer(9))
    },
    turns: [[], [fail(0, { message: 'a broke' })]],
  })
  assert.deepEqual(outcome, { completed: { output: { index: 0, value: 'a broke', error: true } } })
})

test('all and race nest; a losing all takes back what is still open in it', async () => {
  const { commands, outcome } = await check({
    *generator(ctx) {
      return yield ctx.race(ctx.all([ctx.scheduleActivity('a'), ctx.scheduleActivity('b')]), ctx.race(ctx.waitForEvent('e'), ctx.scheduleTimer(9)))
    },
    async asynchronous(ctx) {
      return await ctx.race(ctx.all([ctx.scheduleActivity('a'), ctx.scheduleActivity('b')]), ctx.race(ctx.waitForEvent('e'), ctx.scheduleTimer(9)))
    },
    turns: [[], [done(0), event('e', 'go')]],
  })
  assert.deepEqual(short(commands), ['activity a@0', 'activity b@0', 'event e@0', 'timer 9@0', 'cancel 3@2', 'cancel 1@2'])
  assert.deepEqual(outcome, { completed: { output: { index: 1, value: { index: 0, value: 'go' } } } })
})

test('a race whose first part is ready at once neither starts nor consumes the others', async () => {
  const { commands, outcome } = await check({
    *generator(ctx) {
      yield ctx.scheduleActivity('a')
      const won = yield ctx.race(ctx.waitForEvent('e'), ctx.dequeueEvent('q'))
      return [won, yield ctx.dequeueEvent('q')]
    },
    async asynchronous(ctx) {
      await ctx.scheduleActivity('a')
      const won = await ctx.race(ctx.waitForEvent('e'), ctx.dequeueEvent('q'))
      return [won, await ctx.dequeueEvent('q')]
    },
    turns: [[event('e', 1), queue('q', 2), done(0)]],
  })
  assert.deepEqual(short(commands), ['activity a@0', 'event e@3', 'queue q@3'])
  assert.deepEqual(outcome, { completed: { output: [{ index: 0, value: 1 }, 2] } })
})

test('a task used again after it lost a race runs anew in the next race', async () => {
  const { commands } = await check({
    *generator(ctx) {
      const limit = ctx.scheduleTimer(9)
      yield ctx.race(ctx.waitForEvent('e'), limit)
      yield ctx.race(ctx.waitForEvent('e'), limit)
    },
    async asynchronous(ctx) {
      const limit = ctx.scheduleTimer(9)
      await ctx.race(ctx.waitForEvent('e'), limit)
      await ctx.race(ctx.waitForEvent('e'), limit)
    },
    turns: [[], [event('e')]],
  })
  assert.deepEqual(short(commands), ['event e@0', 'timer 9@0', 'cancel 1@1', 'event e@1', 'timer 9@1'])
})

test('yielding a task again after its result was given runs it again; awaiting it again does not', async () => {
  const again = await runWarm(function* (ctx) {
    const task = ctx.scheduleActivity('a')
    return [yield task, yield task]
  }, [[], [done(0, 1)], [done(1, 2)]])
  assert.deepEqual(again.outcome, { completed: { output: [1, 2] } })
  const once = await runWarm(async (ctx) => {
    const task = ctx.scheduleActivity('a')
    return [await task, await task]
  }, [[], [done(0, 1)]])
  assert.deepEqual(once.outcome, { completed: { output: [1, 1] } })
})

test('Promise.all, race and allSettled work over tasks', async () => {
  const { commands, outcome } = await check({
    async asynchronous(ctx) {
      const pair = await Promise.all([ctx.scheduleActivity('a'), ctx.scheduleActivity('b')])
      const first = await Promise.race([ctx.scheduleActivity('c'), ctx.scheduleTimer(9)])
      const settled = await Promise.allSettled([ctx.scheduleActivity('d')])
      return { pair, first, status: settled[0].status, code: settled[0].reason.code }
    },
    turns: [[], [done(1, 'B'), done(0, 'A')], [done(3)], [fail(4, { code: 'E_D' })]],
  })
  assert.deepEqual(short(commands), ['activity a@0', 'activity b@0', 'activity c@2', 'timer 9@2', 'activity d@3'])
  assert.deepEqual(outcome, { completed: { output: { pair: ['A', 'B'], first: null, status: 'rejected', code: 'E_D' } } })
})

test('concurrent branches of an async function keep the order of history', async () => {
  const branch = async (ctx, name) => {
    const first = await ctx.scheduleActivity(`${name}1`)
    return await ctx.scheduleActivity(`${name}2`, first)
  }
  const turns = [[], [done(1, 'y'), done(0, 'x')], [done(3, 'Y'), done(2, 'X')]]
  const { commands } = await check({ asynchronous: (ctx) => Promise.all([branch(ctx, 'x'), branch(ctx, 'y')]), turns })
  assert.deepEqual(short(commands), ['activity x1@0', 'activity y1@0', 'activity y2@1', 'activity x2@2'])
})
