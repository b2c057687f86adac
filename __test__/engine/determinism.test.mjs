// Code that changed under a running instance is stopped, and the error says where, what was expected and what was found.
// The second runtime is the next deployment: the same names, other code.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { liveWorld, outputOf, until } from '../support/live.mjs'

const activities = { a: async () => 'a', b: async () => 'b', c: async () => 'c' }

/** The first deployment: two steps, then a wait. */
async function before(ctx) {
  await ctx.scheduleActivity('a', 1)
  await ctx.scheduleActivity('b', 2)
  await ctx.waitForEvent('go')
  return 'unchanged'
}

/** Runs `before` up to its wait, deploys `after`, wakes it, and gives how it ended. */
async function redeploy(t, after) {
  const world = await liveWorld(t)
  const first = await world.start({ activities, orchestrations: { main: before } })
  await world.client.startOrchestration('one', 'main')
  await until(async () => (await world.kinds('one')).includes('ExternalSubscribed'), 'it waits')
  await first.shutdown(1000)
  await world.start({ activities, orchestrations: { main: after, other: async () => 'other' } })
  await world.client.raiseEvent('one', 'go', null)
  const end = await world.end('one')
  // The runtime goes on.
  await world.client.startOrchestration('two', 'other')
  assert.equal(outputOf(await world.end('two')), 'other')
  return { ...end, world }
}

const CHANGES = {
  'a renamed activity': {
    async after(ctx) {
      await ctx.scheduleActivity('c', 1)
      await ctx.scheduleActivity('b', 2)
      await ctx.waitForEvent('go')
    },
    position: 2,
    expected: /"?a"?/,
    found: /"?c"?/,
  },
  'another input': {
    async after(ctx) {
      await ctx.scheduleActivity('a', 1)
      await ctx.scheduleActivity('b', 3)
      await ctx.waitForEvent('go')
    },
    position: 4,
    expected: /2/,
    found: /3/,
  },
  'a removed step': {
    async after(ctx) {
      await ctx.scheduleActivity('a', 1)
      await ctx.waitForEvent('go')
    },
    position: 4,
    expected: /activity/i,
    found: /event/i,
  },
  'an added step': {
    async after(ctx) {
      await ctx.scheduleActivity('a', 1)
      await ctx.scheduleTimer(1)
      await ctx.scheduleActivity('b', 2)
      await ctx.waitForEvent('go')
    },
    position: 4,
    expected: /activity/i,
    found: /timer/i,
  },
  'steps in another order': {
    async after(ctx) {
      await ctx.scheduleActivity('b', 2)
      await ctx.scheduleActivity('a', 1)
      await ctx.waitForEvent('go')
    },
    position: 2,
    expected: /"?a"?/,
    found: /"?b"?/,
  },
  'steps side by side that were one after the other': {
    async after(ctx) {
      await ctx.all([ctx.scheduleActivity('a', 1), ctx.scheduleActivity('b', 2)])
      await ctx.waitForEvent('go')
    },
    position: 4,
    expected: /at step 1/,
    found: /at step 0/,
  },
  'an early return': {
    async after(ctx) {
      return await ctx.scheduleActivity('a', 1)
    },
    position: 4,
    expected: /activity/i,
    found: /./,
  },
  'an early error': {
    async after() {
      throw new Error('changed')
    },
    position: 2,
    expected: /activity/i,
    found: /./,
  },
}

describe('changed code', { concurrency: 4 }, () => {
  for (const [what, { after, position, expected, found }] of Object.entries(CHANGES)) {
    test(`with ${what} fails the instance with position, expected and found`, async (t) => {
      const { status, error } = await redeploy(t, after)
      assert.equal(status, 'Failed')
      const parts = /nondeterministic: at event (\d+) history has (.*) but the code gave (.*)/.exec(error)
      assert.ok(parts, error)
      assert.equal(Number(parts[1]), position, error)
      assert.match(parts[2], expected)
      assert.match(parts[3], found)
    })
  }

  test('that only adds steps behind what is recorded goes on', async (t) => {
    const end = await redeploy(t, async (ctx) => {
      await before(ctx)
      return await ctx.scheduleActivity('c')
    })
    assert.equal(outputOf(end), 'c')
  })

  test('that asks for chance and time outside of the context is found where it matters', async (t) => {
    const world = await liveWorld(t)
    await world.start({
      activities,
      options: { stickyCacheSize: 0 },
      orchestrations: {
        async main(ctx) {
          await ctx.scheduleActivity('a', Math.random())
          await ctx.scheduleActivity('b')
        },
      },
    })
    const { status, error } = await world.run('one')
    assert.equal(status, 'Failed')
    assert.match(error, /nondeterministic: at event 2 history has .* but the code gave /)
  })

  test('is told to the caller as NondeterminismError', async (t) => {
    const { world } = await redeploy(t, CHANGES['a removed step'].after)
    const error = await world.client.handle('one').result().then(assert.fail, (error) => error)
    assert.equal(error.code, 'NONDETERMINISM')
    assert.equal(error.name, 'NondeterminismError')
  })
})
