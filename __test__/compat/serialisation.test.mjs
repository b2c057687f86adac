// Table "Serialisation rules": one test for each row.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { liveApp, outputOf } from '../support/live.mjs'

describe('serialisation', () => {
  test('undefined becomes null, a Date a text, a Map an empty object, functions vanish', async (t) => {
    const app = await liveApp(t, { main: async (_ctx, input) => input })
    const input = { date: new Date(0), map: new Map([[1, 2]]), fn: () => 1, gone: undefined, list: [undefined, () => 1] }
    assert.deepEqual(outputOf(await app.run('a', input)), { date: '1970-01-01T00:00:00.000Z', map: {}, list: [null, null] })
    assert.equal(outputOf(await app.run('b', undefined)), null)
  })

  test('a BigInt throws', async (t) => {
    const app = await liveApp(t, { main: async () => 1 })
    await assert.rejects(app.client.startOrchestration('a', 'main', 1n), /BigInt/)
    await assert.rejects(app.client.raiseEvent('a', 'e', { n: 1n }), /BigInt/)
  })

  test('a start without an input gives the generator null', async (t) => {
    const app = await liveApp(t, {
      *main(_ctx, input) {
        return { type: typeof input, value: input }
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), { type: 'object', value: null })
  })

  test('an activity gets its input parsed, and null where there is none', async (t) => {
    const app = await liveApp(t, {
      activities: { echo: async (_ctx, input) => ({ input, type: typeof input }) },
      *main(ctx) {
        return [yield ctx.scheduleActivity('echo'), yield ctx.scheduleActivity('echo', 'text'), yield ctx.scheduleActivity('echo', { a: [1] })]
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), [
      { input: null, type: 'object' },
      { input: 'text', type: 'string' },
      { input: { a: [1] }, type: 'object' },
    ])
  })

  test('a result comes back parsed, a text as the text it was', async (t) => {
    const app = await liveApp(t, {
      activities: { echo: async (_ctx, input) => input, nothing: async () => undefined },
      *main(ctx) {
        const results = []
        for (const value of ['42', '{"a":1}', 42, null, [1, 'x'], { a: { b: true } }, '']) results.push(yield ctx.scheduleActivity('echo', value))
        results.push(yield ctx.scheduleActivity('nothing'))
        return results
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), ['42', '{"a":1}', 42, null, [1, 'x'], { a: { b: true } }, '', null])
  })

  test('getStatus leaves the output as JSON text; waits and infos parse it', async (t) => {
    const app = await liveApp(t, { main: async (_ctx, input) => input })
    for (const [id, value] of Object.entries({ object: { a: 1 }, text: 'hello', nothing: null, zero: 0, no: false })) {
      assert.deepEqual(outputOf(await app.run(id, value)), value)
      assert.equal((await app.client.getStatus(id)).output, JSON.stringify(value))
      assert.deepEqual((await app.client.waitForStatusChange(id, 0)).output, value)
      assert.deepEqual((await app.client.getInstanceInfo(id)).output, value)
      assert.deepEqual((await app.client.getExecutionInfo(id, 1)).output, value)
      assert.deepEqual(await app.client.waitForOrchestrationTyped(id), value)
    }
  })

  test('an error thrown into the generator is an Error that names what the activity said', async (t) => {
    const app = await liveApp(t, {
      activities: {
        fail: async () => {
          throw Object.assign(new TypeError('out of paper'), { code: 'E_PAPER' })
        },
      },
      *main(ctx) {
        try {
          yield ctx.scheduleActivity('fail')
        } catch (error) {
          return [error instanceof Error, error.message.includes('out of paper')]
        }
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), [true, true])
  })

  test('custom status is a plain string, never JSON', async (t) => {
    const app = await liveApp(t, {
      async main(ctx) {
        ctx.setCustomStatus(42)
        await ctx.scheduleTimer(1)
        const first = ctx.getCustomStatus()
        ctx.setCustomStatus('{"a":1}')
        return [first, ctx.getCustomStatus()]
      },
    })
    const end = await app.run('a')
    assert.deepEqual(outputOf(end), ['42', '{"a":1}'])
    assert.equal(end.customStatus, '{"a":1}')
  })
})

describe('typed calls', () => {
  const echo = { echo: async (_ctx, input) => input, broken: async () => { throw new Error('boom') } }
  const orchestrations = { child: async (_ctx, input) => input }

  test('read a result that is a text as JSON once more', async (t) => {
    const app = await liveApp(t, {
      activities: echo,
      orchestrations,
      *main(ctx) {
        const retry = { maxAttempts: 1 }
        return [
          yield ctx.scheduleActivityTyped('echo', '42'),
          yield ctx.scheduleActivityTyped('echo', 'no JSON'),
          yield ctx.scheduleActivityTyped('echo', { text: '42' }),
          yield ctx.scheduleActivityTyped('echo', '{"a":[1]}'),
          yield ctx.scheduleActivityWithRetryTyped('echo', '[1]', retry),
          yield ctx.scheduleSubOrchestrationTyped('child', 'true'),
          yield ctx.scheduleSubOrchestrationWithIdTyped('child', 'my-child', 'null'),
          yield ctx.scheduleSubOrchestrationVersionedTyped('child', '1.0.0', '7'),
          yield ctx.scheduleSubOrchestrationVersionedWithIdTyped('child', null, 'my-other', '8'),
        ]
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), [42, 'no JSON', { text: '42' }, { a: [1] }, [1], true, null, 7, 8])
  })

  test('in an async function follow the same rule', async (t) => {
    const app = await liveApp(t, {
      activities: echo,
      main: async (ctx) => [
        await ctx.scheduleActivityTyped('echo', '42'),
        await Promise.all([ctx.scheduleActivityTyped('echo', '43'), ctx.scheduleActivity('echo', '44')]),
      ],
    })
    assert.deepEqual(outputOf(await app.run('a')), [42, [43, '44']])
  })

  test('allTyped reads each ok, raceTyped the winner; plain all and race ignore the mark of a part', async (t) => {
    const app = await liveApp(t, {
      activities: echo,
      *main(ctx) {
        const parts = () => [ctx.scheduleActivityTyped('echo', '1'), ctx.scheduleActivity('echo', '2'), ctx.scheduleActivity('broken')]
        const typed = yield ctx.allTyped(parts())
        const plain = yield ctx.all(parts())
        const won = yield ctx.raceTyped(ctx.scheduleActivity('echo', '3'), ctx.scheduleTimer(60_000))
        const same = yield ctx.race(ctx.scheduleActivityTyped('echo', '4'), ctx.scheduleTimer(60_000))
        return [typed.map((each) => each.ok ?? each.err.includes('boom')), plain.map((each) => each.ok ?? 'err'), won, same]
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), [[1, 2, true], ['1', '2', 'err'], { index: 0, value: 3 }, { index: 0, value: '4' }])
  })

  test('of events and queues have no effect on the data', async (t) => {
    const app = await liveApp(t, {
      *main(ctx) {
        return [yield ctx.waitForEventTyped('e'), yield ctx.dequeueEventTyped('q')]
      },
    })
    await app.client.startOrchestrationTyped('a', 'main')
    await app.client.raiseEventTyped('a', 'e', '42')
    await app.client.enqueueEventTyped('a', 'q', '43')
    assert.deepEqual(outputOf(await app.end('a')), ['42', '43'])
  })

  test('of starts and continue-as-new are the same as the plain ones', async (t) => {
    const app = await liveApp(t, {
      orchestrations,
      *main(ctx, n) {
        if (n === 0) yield ctx.continueAsNewTyped(1)
        if (n === 1) yield ctx.continueAsNewVersionedTyped(2, null)
        yield ctx.startOrchestrationTyped('child', 'detached-1', '5')
        yield ctx.startOrchestrationVersionedTyped('child', '1.0.0', 'detached-2', '6')
        return n
      },
    })
    await app.client.startOrchestrationVersionedTyped('a', 'main', 0, '1.0.0')
    assert.equal(outputOf(await app.end('a')), 2)
    assert.deepEqual([outputOf(await app.end('detached-1')), outputOf(await app.end('detached-2'))], ['5', '6'])
  })
})
