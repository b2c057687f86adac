// Table "OrchestrationContext": fields, every step, and every member that answers at once.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { liveApp, outputOf, until } from '../support/live.mjs'

const echo = async (_ctx, input) => input

describe('fields and steps', () => {
  test('instanceId, executionId, orchestrationName and orchestrationVersion are there', async (t) => {
    const app = await liveApp(t, {
      *main(ctx, n) {
        if (n === 0) yield ctx.continueAsNew(1)
        return [ctx.instanceId, ctx.executionId, ctx.orchestrationName, ctx.orchestrationVersion]
      },
    })
    assert.deepEqual(outputOf(await app.run('a', 0)), ['a', 2, 'main', '1.0.0'])
  })

  test('nothing is scheduled until a step is yielded; one that never is never happens', async (t) => {
    const app = await liveApp(t, {
      activities: { echo },
      *main(ctx) {
        ctx.scheduleActivity('echo', 'never')
        ctx.scheduleTimer(1)
        return yield ctx.scheduleActivity('echo', 'yielded')
      },
    })
    assert.equal(outputOf(await app.run('a')), 'yielded')
    assert.deepEqual((await app.data('a', 'ActivityScheduled')).map(({ input }) => input), ['yielded'])
    assert.equal((await app.kinds('a')).includes('TimerCreated'), false)
  })

  test('a step that is yielded twice runs twice', async (t) => {
    let runs = 0
    const app = await liveApp(t, {
      activities: { count: async () => ++runs },
      *main(ctx) {
        const step = ctx.scheduleActivity('count')
        return [yield step, yield step]
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), [1, 2])
    assert.equal((await app.data('a', 'ActivityScheduled')).length, 2)
  })

  for (const [what, value] of Object.entries({ 'an object': { type: 'activity' }, nothing: undefined, 'a promise': Promise.resolve(1), 'a number': 5 })) {
    test(`yielding ${what} fails the orchestration with the documented words`, async (t) => {
      const app = await liveApp(t, {
        *main() {
          yield value
        },
      })
      const { status, error } = await app.run('a')
      assert.equal(status, 'Failed')
      assert.match(error, /Invalid generator step result: /)
    })
  }

  test('scheduleActivity gives the result or throws, and has a sessionId option', async (t) => {
    const app = await liveApp(t, {
      activities: {
        session: async (ctx) => ctx.sessionId,
        fail: async () => {
          throw new Error('no luck')
        },
      },
      *main(ctx) {
        const results = [yield ctx.scheduleActivity('session'), yield ctx.scheduleActivity('session', null, { sessionId: 's' })]
        results.push(yield ctx.scheduleActivityOnSession('session', null, 's2'))
        results.push(yield ctx.scheduleActivityWithRetryOnSession('session', null, { maxAttempts: 2 }, 's3'))
        results.push(yield ctx.scheduleActivityOnSessionTyped('session', null, 's4'))
        results.push(yield ctx.scheduleActivityWithRetryOnSessionTyped('session', null, { maxAttempts: 2 }, 's5'))
        try {
          yield ctx.scheduleActivity('fail')
        } catch (error) {
          results.push(error.message.includes('no luck'))
        }
        return results
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), [null, 's', 's2', 's3', 's4', 's5', true])
  })

  test('withTag sets the tag and returns the same object', async (t) => {
    const app = await liveApp(t, {
      async main(ctx) {
        const step = ctx.scheduleActivity('never-run')
        const same = step.withTag('gpu')
        return [step === same, step.tag]
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), [true, 'gpu'])
  })

  test('scheduleTimer gives null; a delay that is no whole number of at least 0 fails the orchestration', async (t) => {
    const app = await liveApp(t, {
      *main(ctx, delay) {
        return [yield ctx.scheduleTimer(delay)]
      },
    })
    assert.deepEqual(outputOf(await app.run('zero', 0)), [null])
    assert.deepEqual(outputOf(await app.run('ten', 10)), [null])
    for (const [id, delay] of [['a', -1], ['b', 1.5], ['c', 'soon'], ['d', null]]) {
      const { status, error } = await app.run(id, delay)
      assert.equal(status, 'Failed', id)
      assert.match(error, /delayMs must be a whole number/)
    }
  })

  test('waitForEvent and dequeueEvent give parsed data; a text stays a text', async (t) => {
    const app = await liveApp(t, {
      *main(ctx) {
        return [yield ctx.waitForEvent('e'), yield ctx.dequeueEvent('q'), yield ctx.dequeueEvent('q')]
      },
    })
    await app.client.startOrchestration('a', 'main')
    await app.client.raiseEvent('a', 'e', { ok: true })
    await app.client.enqueueEvent('a', 'q', '{"looks":"like JSON"}')
    await app.client.enqueueEvent('a', 'q', [1])
    assert.deepEqual(outputOf(await app.end('a')), [{ ok: true }, '{"looks":"like JSON"}', [1]])
  })

  test('getValueFromInstance reads a value of another instance, null where there is none', async (t) => {
    const app = await liveApp(t, {
      orchestrations: {
        async writer(ctx) {
          ctx.setValue('k', 'v')
        },
      },
      *main(ctx) {
        return [
          yield ctx.getValueFromInstance('w', 'k'),
          yield ctx.getValueFromInstance('w', 'other'),
          yield ctx.getValueFromInstance('nobody', 'k'),
        ]
      },
    })
    await app.client.startOrchestration('w', 'writer')
    await app.end('w')
    assert.deepEqual(outputOf(await app.run('a')), ['v', null, null])
  })

  test('startOrchestration gives null without waiting', async (t) => {
    const app = await liveApp(t, {
      orchestrations: { side: async (ctx) => await ctx.waitForEvent('go') },
      *main(ctx) {
        return [yield ctx.startOrchestration('side', 'side-1', 1), yield ctx.startOrchestrationVersioned('side', null, 'side-2')]
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), [null, null])
    await until(async () => (await app.client.getStatus('side-1')).status === 'Running')
    assert.equal('parentInstanceId' in (await app.client.getInstanceInfo('side-1')), false)
  })

  test('newGuid is a v4 uuid of 36 characters, utcNow a time in ms; both may be yielded and replay the same', async (t) => {
    const app = await liveApp(t, {
      options: { stickyCacheSize: 0 },
      activities: { echo },
      *main(ctx) {
        const first = [yield ctx.newGuid(), yield ctx.utcNow(), yield ctx.newGuid()]
        const seen = yield ctx.scheduleActivity('echo', first)
        return { first, seen }
      },
    })
    const { first, seen } = outputOf(await app.run('a'))
    assert.deepEqual(first, seen)
    for (const guid of [first[0], first[2]]) assert.match(guid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    assert.notEqual(first[0], first[2])
    assert.ok(Math.abs(first[1] - Date.now()) < 60_000)
  })

  test('code after continueAsNew never runs', async (t) => {
    let after = 0
    const app = await liveApp(t, {
      *main(ctx, n) {
        if (n === 0) {
          yield ctx.continueAsNew(1)
          after += 1
        }
        return n
      },
    })
    assert.equal(outputOf(await app.run('a', 0)), 1)
    assert.equal(after, 0)
  })
})

describe('members that answer at once', () => {
  test('custom status: set, get, reset', async (t) => {
    const app = await liveApp(t, {
      *main(ctx) {
        const seen = [ctx.getCustomStatus()]
        ctx.setCustomStatus('a')
        seen.push(ctx.getCustomStatus())
        yield ctx.scheduleTimer(1)
        seen.push(ctx.getCustomStatus())
        ctx.resetCustomStatus()
        seen.push(ctx.getCustomStatus())
        return seen
      },
    })
    const end = await app.run('a')
    assert.deepEqual(outputOf(end), [null, 'a', 'a', null])
    assert.equal('customStatus' in end, false)
    assert.equal(end.customStatusVersion, 2)
  })

  test('several changes of the custom status in one turn are one step of its version', async (t) => {
    const app = await liveApp(t, {
      async main(ctx) {
        ctx.setCustomStatus('a')
        ctx.setCustomStatus('b')
        ctx.setCustomStatus('c')
        await ctx.scheduleTimer(1)
        ctx.setCustomStatus('d')
      },
    })
    const end = await app.run('a')
    assert.deepEqual([end.customStatus, end.customStatusVersion], ['d', 2])
  })

  test('values: set, get, clear, all, keys, length', async (t) => {
    const app = await liveApp(t, {
      options: { stickyCacheSize: 0 },
      *main(ctx) {
        const seen = [ctx.getValue('a'), ctx.getKvLength()]
        ctx.setValue('a', 'one')
        ctx.setValue('b', { toString: () => 'two' })
        seen.push(ctx.getValue('a'), ctx.getKvAllValues(), ctx.getKvAllKeys().sort(), ctx.getKvLength())
        yield ctx.scheduleTimer(1)
        ctx.clearValue('a')
        seen.push(ctx.getValue('a'), ctx.getValue('b'))
        ctx.clearAllValues()
        seen.push(ctx.getKvAllValues(), ctx.getKvAllKeys(), ctx.getKvLength())
        return seen
      },
    })
    assert.deepEqual(outputOf(await app.run('i')), [null, 0, 'one', { a: 'one', b: 'two' }, ['a', 'b'], 2, null, 'two', {}, [], 0])
  })

  test('pruneKvValuesUpdatedBefore gives the number removed; its argument is cut to a whole number of at least 0', async (t) => {
    const app = await liveApp(t, {
      *main(ctx, n) {
        if (n === 0) {
          ctx.setValue('old', '1')
          yield ctx.continueAsNew(1)
        }
        const now = yield ctx.utcNow()
        const none = ctx.pruneKvValuesUpdatedBefore(-5.5)
        const removed = ctx.pruneKvValuesUpdatedBefore(now + 1000.5)
        return [none, removed, ctx.getKvLength()]
      },
    })
    assert.deepEqual(outputOf(await app.run('i', 0)), [0, 1, 0])
  })

  test('a value is read, changed and written over turns without losing anything, also in replay', async (t) => {
    const app = await liveApp(t, {
      options: { stickyCacheSize: 0 },
      activities: { echo },
      *main(ctx) {
        for (let i = 0; i < 5; i++) {
          ctx.setValue('n', String(Number(ctx.getValue('n') ?? 0) + 1))
          yield ctx.scheduleActivity('echo', i)
        }
        return ctx.getValue('n')
      },
    })
    assert.equal(outputOf(await app.run('i')), '5')
    assert.equal(await app.client.getValue('i', 'n'), '5')
  })

  test('trace lines are silent in replay', async (t) => {
    const { subscribe, unsubscribe } = await import('node:diagnostics_channel')
    const lines = []
    const note = ({ message, instanceId }) => instanceId === 'traced' && lines.push(message)
    subscribe('holdfast:trace', note)
    t.after(() => unsubscribe('holdfast:trace', note))
    const app = await liveApp(t, {
      options: { stickyCacheSize: 0, logLevel: 'off' },
      *main(ctx) {
        ctx.traceInfo('a')
        yield ctx.scheduleTimer(1)
        ctx.traceWarn('b')
        yield ctx.scheduleTimer(1)
        ctx.traceError('c')
        ctx.traceDebug('d')
      },
    })
    await app.run('traced')
    assert.deepEqual(lines, ['a', 'b', 'c', 'd'])
  })
})
