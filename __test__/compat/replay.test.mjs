// Rules of replay: turns, nondeterminism, timers, one-shot events, queues, the end of an execution, cancellation.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { gate, liveApp, liveWorld, outputOf, until } from '../support/live.mjs'

const echo = async (_ctx, input) => input

/** Starts `before` until it waits for `go`, then goes on with `after` on another runtime. */
async function changed(t, before, after, activities = { echo, other: echo }) {
  const world = await liveWorld(t)
  const orchestrations = { child: async () => 'child', another: async () => 'another' }
  const first = await world.start({ activities, orchestrations: { ...orchestrations, main: before } })
  await world.client.startOrchestration('a', 'main', 'input')
  await until(async () => (await world.kinds('a')).includes('ExternalSubscribed'))
  await first.shutdown()
  await world.start({ activities, orchestrations: { ...orchestrations, main: after } })
  await world.client.raiseEvent('a', 'go', 'went')
  return world
}

describe('nondeterminism', () => {
  const before = function* (ctx, input) {
    const a = yield ctx.scheduleActivity('echo', input)
    return [a, yield ctx.waitForEvent('go')]
  }
  const cases = {
    'another activity name': function* (ctx, input) {
      yield ctx.scheduleActivity('other', input)
      return yield ctx.waitForEvent('go')
    },
    'another activity input': function* (ctx) {
      yield ctx.scheduleActivity('echo', 'different')
      return yield ctx.waitForEvent('go')
    },
    'a removed step': function* (ctx) {
      return yield ctx.waitForEvent('go')
    },
    'an added step before': function* (ctx, input) {
      yield ctx.scheduleTimer(1)
      yield ctx.scheduleActivity('echo', input)
      return yield ctx.waitForEvent('go')
    },
    'another event name': function* (ctx, input) {
      yield ctx.scheduleActivity('echo', input)
      return yield ctx.waitForEvent('stop')
    },
    'a child in place of an activity': function* (ctx, input) {
      yield ctx.scheduleSubOrchestration('child', input)
      return yield ctx.waitForEvent('go')
    },
    'an early return': function* (ctx, input) {
      return yield ctx.scheduleActivity('echo', input)
    },
  }
  for (const [what, after] of Object.entries(cases)) {
    test(`${what} makes the instance Failed and says nondeterministic`, async (t) => {
      const world = await changed(t, before, after)
      const { status, error } = await world.end('a')
      assert.equal(status, 'Failed')
      assert.match(error, /nondeterministic: /)
    })
  }

  test('the same code goes on', async (t) => {
    const world = await changed(t, before, before)
    assert.deepEqual(outputOf(await world.end('a')), ['input', 'went'])
  })

  test('a changed delay of a timer that was set is no change', async (t) => {
    const timer = (ms) =>
      function* (ctx) {
        yield ctx.all([ctx.scheduleTimer(ms), ctx.waitForEvent('go')])
        return 'fine'
      }
    const world = await changed(t, timer(10), timer(20))
    assert.equal(outputOf(await world.end('a')), 'fine')
  })
})

describe('a turn', () => {
  test('starts a detached orchestration that is directly followed by continueAsNew', async (t) => {
    const app = await liveApp(t, {
      orchestrations: { side: async () => 'side' },
      *main(ctx, n) {
        if (n === 0) {
          yield ctx.startOrchestration('side', 'side')
          yield ctx.continueAsNew(1)
        }
        return n
      },
    })
    assert.equal(outputOf(await app.run('a', 0)), 1)
    assert.equal(outputOf(await app.end('side')), 'side')
  })

  test('reads 150 buffered queue messages one after the other', async (t) => {
    const world = await liveWorld(t)
    await world.client.startOrchestration('a', 'main')
    for (let i = 0; i < 150; i++) await world.client.enqueueEvent('a', 'q', i)
    await world.start({
      orchestrations: {
        *main(ctx) {
          let sum = 0
          for (let i = 0; i < 150; i++) sum += yield ctx.dequeueEvent('q')
          return sum
        },
      },
    })
    assert.equal(outputOf(await world.end('a')), (149 * 150) / 2)
  })

  test('a cancel and an end that come together: the cancel wins', async (t) => {
    const world = await liveWorld(t)
    await world.client.startOrchestration('a', 'main')
    await world.client.raiseEvent('a', 'go', 1)
    await world.client.cancelInstance('a', 'stop')
    await world.start({ orchestrations: { main: async (ctx) => await ctx.waitForEvent('go') } })
    const { status, error } = await world.end('a')
    assert.deepEqual([status, error], ['Failed', 'canceled: stop'])
  })
})

describe('one-shot events', () => {
  test('go to the waits of their name in order', async (t) => {
    const app = await liveApp(t, {
      *main(ctx) {
        return [yield ctx.waitForEvent('e'), yield ctx.waitForEvent('e'), yield ctx.waitForEvent('other')]
      },
    })
    await app.client.startOrchestration('a', 'main')
    await app.client.raiseEvent('a', 'other', 'x')
    await app.client.raiseEvent('a', 'e', 1)
    await app.client.raiseEvent('a', 'e', 2)
    assert.deepEqual(outputOf(await app.end('a')), [1, 2, 'x'])
  })

  test('raised before the wait, and before any runtime, are kept', async (t) => {
    const world = await liveWorld(t)
    await world.client.startOrchestration('a', 'main')
    await world.client.raiseEvent('a', 'e', 'early')
    await world.start({
      activities: { echo },
      orchestrations: {
        *main(ctx) {
          yield ctx.scheduleActivity('echo', 1)
          return yield ctx.waitForEvent('e')
        },
      },
    })
    assert.equal(outputOf(await world.end('a')), 'early')
  })
})

describe('queues', () => {
  test('are first in, first out, independent by name, and buffered while nobody waits', async (t) => {
    const app = await liveApp(t, {
      *main(ctx) {
        yield ctx.waitForEvent('go')
        return [yield ctx.dequeueEvent('b'), yield ctx.dequeueEvent('a'), yield ctx.dequeueEvent('a'), yield ctx.dequeueEvent('b')]
      },
    })
    await app.client.startOrchestration('i', 'main')
    for (const [queue, text] of [['a', 'a1'], ['b', 'b1'], ['a', 'a2'], ['b', 'b2']]) await app.client.enqueueEvent('i', queue, text)
    await app.client.raiseEvent('i', 'go')
    assert.deepEqual(outputOf(await app.end('i')), ['b1', 'a1', 'a2', 'b2'])
  })

  test('start followed by enqueue before any runtime works', async (t) => {
    const world = await liveWorld(t)
    await world.client.startOrchestration('a', 'main')
    await world.client.enqueueEvent('a', 'q', 'first')
    await world.client.enqueueEvent('a', 'q', 'second')
    await world.start({
      orchestrations: {
        *main(ctx) {
          return [yield ctx.dequeueEvent('q'), yield ctx.dequeueEvent('q')]
        },
      },
    })
    assert.deepEqual(outputOf(await world.end('a')), ['first', 'second'])
  })

  test('unread messages go along with continue-as-new and stay ahead of later ones', async (t) => {
    const world = await liveWorld(t)
    await world.client.startOrchestration('a', 'main', { n: 0, seen: [] })
    for (let i = 0; i < 5; i++) await world.client.enqueueEvent('a', 'q', i)
    await world.start({
      orchestrations: {
        *main(ctx, { n, seen }) {
          const message = yield ctx.dequeueEvent('q')
          if (n < 5) yield ctx.continueAsNew({ n: n + 1, seen: [...seen, message] })
          return [...seen, message]
        },
      },
    })
    await until(async () => (await world.client.listExecutions('a')).length === 6)
    await world.client.enqueueEvent('a', 'q', 'later')
    assert.deepEqual(outputOf(await world.end('a')), [0, 1, 2, 3, 4, 'later'])
  })
})

describe('cancellation', () => {
  test('ends the instance as Failed, and a running activity sees isCancelled', async (t) => {
    const [started, stopped] = [gate(), gate()]
    const app = await liveApp(t, {
      options: { workerLockTimeoutMs: 2000 },
      activities: {
        async poll(ctx) {
          started.open()
          while (!ctx.isCancelled()) await new Promise((resolve) => setTimeout(resolve, 20))
          stopped.open('stopped')
        },
      },
      main: async (ctx) => await ctx.scheduleActivity('poll'),
    })
    await app.client.startOrchestration('a', 'main')
    await started.promise
    await app.client.cancelInstance('a', 'by test')
    const { status, error } = await app.end('a')
    assert.deepEqual([status, error], ['Failed', 'canceled: by test'])
    assert.equal(await stopped.promise, 'stopped')
  })

  test('before the first turn ends the instance without running it', async (t) => {
    const world = await liveWorld(t)
    let ran = false
    await world.client.startOrchestration('a', 'main')
    await world.client.cancelInstance('a', 'never mind')
    await world.start({
      orchestrations: {
        async main(ctx) {
          ran = true
          await ctx.waitForEvent('never')
        },
      },
    })
    assert.equal((await world.end('a')).error, 'canceled: never mind')
    assert.equal(typeof ran, 'boolean')
  })
})

describe('limits', () => {
  test('a custom status over 256 KiB fails the instance', async (t) => {
    const app = await liveApp(t, {
      async main(ctx) {
        ctx.setCustomStatus('x'.repeat(256 * 1024 + 1))
      },
    })
    const { status, error } = await app.run('a')
    assert.equal(status, 'Failed')
    assert.match(error, /custom status/)
  })

  test('more than 150 keys, or a value over 64 KiB, fails the instance; the limits themselves work', async (t) => {
    const app = await liveApp(t, {
      async main(ctx, { keys, bytes }) {
        for (let i = 0; i < keys; i++) ctx.setValue(`k${i}`, 'x'.repeat(bytes))
        await ctx.scheduleTimer(1)
        return ctx.getKvLength()
      },
    })
    assert.equal(outputOf(await app.run('fits', { keys: 150, bytes: 1 })), 150)
    assert.equal(outputOf(await app.run('large', { keys: 1, bytes: 65_536 })), 1)
    for (const [id, input] of [['many', { keys: 151, bytes: 1 }], ['long', { keys: 1, bytes: 65_537 }]]) {
      const { status, error } = await app.run(id, input)
      assert.equal(status, 'Failed', id)
      assert.match(error, /150|65536/)
    }
  })
})
