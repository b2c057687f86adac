// Every place where a value enters gives it back as JSON holds it, live and replayed; what JSON cannot hold is refused at
// the call that hands it over, with the place of the bad value, and nothing is stored.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inspect } from 'node:util'

import { liveApp, liveWorld, outputOf, until } from '../support/live.mjs'

const nested = (depth) => {
  let value = 'core'
  for (let i = 0; i < depth; i++) value = i % 2 ? { in: value } : [value]
  return value
}

const GOOD = {
  'a lone surrogate': { text: 'a\ud800b', '\udfff': ['\udc00\ud800'] },
  'NUL inside a string': { text: 'a\0b', 'key\0': '\0' },
  'a __proto__ key': JSON.parse('{"__proto__":{"isAdmin":true},"constructor":1,"toString":null,"hasOwnProperty":"x"}'),
  'minus zero and odd numbers': [-0, 0, 5e-324, 1.7976931348623157e308, 2 ** 53 + 2, 0.1 + 0.2, -1e21],
  'undefined in all places': { gone: undefined, list: [undefined, null, , 1] }, // biome-ignore lint: the hole is the case
  'nesting 900 deep': nested(900),
  'what looks like the wire': ['"}],"turns":[', '\\', '\\u0000', '\u2028\u2029', '\u007f\u0001', '{"h":1}', '$1', '/*schema*/', "'; drop table x; --"],
  'emoji and other alphabets': ['👩‍👩‍👧‍👦', 'ﷺ', 'é', 'e\u0301', '\ufeff', '\uffff'],
  'values with toJSON and wrappers': [new Date(0), { toJSON: () => ({ made: 1 }) }, new Number(3), new String('s'), new Boolean(false), Buffer.from('hi')],
  'keys in their own order': { b: 1, 2: 'two', a: 2, 1: 'one', '': 'empty' },
  'the empty string': '',
  null: null,
  undefined,
  false: false,
}

const activities = {
  echo: async (_ctx, value) => value,
  fail: async (_ctx, value) => {
    throw Object.assign(new Error('carried'), { field: value })
  },
}
const orchestrations = { echo: async (_ctx, value) => value }

/** The value's way through every place; `seen` shows each as the code saw it. */
function* everyPlace(ctx, input) {
  const seen = [inspect(input, { depth: null, maxStringLength: null })]
  const look = (value) => {
    seen.push(inspect(value, { depth: null, maxStringLength: null }))
    return value
  }
  const result = look(yield ctx.scheduleActivity('echo', input))
  const child = look(yield ctx.scheduleSubOrchestration('echo', result))
  const event = look(yield ctx.waitForEvent('event'))
  const message = look(yield ctx.dequeueEvent('queue'))
  const [part] = yield ctx.all([ctx.scheduleActivity('echo', message)])
  const race = yield ctx.race(ctx.scheduleActivity('echo', look(part.ok)))
  let field
  try {
    yield ctx.scheduleActivity('fail', look(race.value))
  } catch (error) {
    field = look(error.field)
  }
  if (ctx.executionId === 1) return yield ctx.continueAsNew(event)
  return { values: [result, child, event, message, race.value, field], seen }
}

describe('a value', { concurrency: 2 }, () => {
  for (const stickyCacheSize of [1000, 0]) {
    test(`comes back from every place as JSON holds it (${stickyCacheSize} executions kept)`, async (t) => {
      const app = await liveApp(t, { main: everyPlace, activities, orchestrations, options: { stickyCacheSize } })
      for (const [id, value] of Object.entries(GOOD)) {
        await app.client.startOrchestration(id, 'main', value)
        for (let execution = 1; execution <= 2; execution++) {
          await app.client.raiseEvent(id, 'event', value)
          await app.client.enqueueEvent(id, 'queue', value)
        }
      }
      for (const [id, value] of Object.entries(GOOD)) {
        const expected = JSON.parse(JSON.stringify(value ?? null))
        const { values, seen } = outputOf(await app.end(id))
        // A field that is null where undefined was given is an error field that was left out.
        const fields = value === undefined ? values.slice(0, 5) : values
        for (const each of fields) assert.deepStrictEqual(each, expected, id)
        assert.deepEqual([...new Set(seen)], [inspect(expected, { depth: null, maxStringLength: null })], id)
      }
    })
  }

  test('of 20 MiB goes through an activity and comes out whole', async (t) => {
    const app = await liveApp(t, { main: async (ctx, text) => await ctx.scheduleActivity('echo', text), activities })
    const text = 'é'.repeat(10 * 1024 * 1024)
    const output = outputOf(await app.run('one', text))
    assert.ok(output === text, 'the same text')
  })

  test('is the same object kind live and in replay: what was undefined or -0 is what JSON makes of it, at once', async (t) => {
    const kinds = (value) => [Object.is(value.zero, -0), 'gone' in value, value.list.length, value.list[0], typeof value.date]
    const given = { zero: -0, gone: undefined, list: [undefined], date: new Date(0) }
    for (const stickyCacheSize of [1000, 0]) {
      const app = await liveApp(t, {
        options: { stickyCacheSize },
        activities: { give: async () => given },
        async main(ctx) {
          const value = await ctx.scheduleActivity('give')
          const first = kinds(value)
          await ctx.scheduleTimer(1)
          return [first, kinds(value)]
        },
      })
      const plain = [false, false, 1, null, 'string']
      assert.deepEqual(outputOf(await app.run('one')), [plain, plain])
    }
  })
})

const circular = { list: [{}] }
circular.list[0].self = circular

const BAD = {
  'is circular': [circular, /\$\.list\[0\]\.self is circular/],
  'holds a BigInt': [{ n: [1n] }, /\$\.n\[0\] is a BigInt/],
  'holds NaN': [{ n: Number.NaN }, /\$\.n is NaN/],
  'holds Infinity': [[Infinity], /\$\[0\] is Infinity/],
  'has a toJSON that throws': [{ a: { toJSON: () => { throw new Error('broken') } } }, /\$\.a threw while it was read: broken/],
  'has a getter that throws': [{ get a() { throw new Error('hidden') } }, /\$\.a threw while it was read: hidden/],
  'is nested 10 000 deep': [nested(10_000), /(\.in|\[0\]){100,} is nested more than 1000 levels deep/],
  'is 65 MiB': ['x'.repeat(65 * 1024 * 1024), /is 68157442 bytes long as JSON, more than the limit of 67108864/],
}

describe('a value that JSON cannot hold', () => {
  test('is refused where it enters, and nothing is stored', async (t) => {
    const world = await liveWorld(t)
    const { client } = world
    for (const [what, [value, why]] of Object.entries(BAD)) {
      const refused = (call, argument) =>
        assert.rejects(call, (error) => {
          assert.equal(error.code, 'INVALID_PAYLOAD', what)
          assert.match(error.message, argument, what)
          assert.match(error.message, why, what)
          return true
        })
      await refused(client.startOrchestration('one', 'main', value), /^input of orchestration 'main'/)
      await refused(client.startOrchestrationVersioned('one', 'main', value, '1.0.0'), /^input of orchestration 'main'/)
      await refused(client.start('main', value), /^input of orchestration 'main'/)
      await refused(client.raiseEvent('one', 'go', value), /^data of event 'go'/)
      await refused(client.enqueueEvent('one', 'work', value), /^message of queue 'work'/)
    }
    assert.deepEqual(await world.rows(), { instance: 0, execution: 0, history: 0, turn_queue: 0, inbox: 0, activity_queue: 0, ended_activity: 0, kv: 0 })
  })

  test('throws in the orchestration that hands it over, which may go on', async (t) => {
    const app = await liveApp(t, {
      activities,
      orchestrations,
      async main(ctx, what) {
        const [value] = BAD[what]
        const refused = (call) => {
          try {
            call()
            return 'taken'
          } catch (error) {
            return `${error.code} ${error.message.slice(0, 200)}`
          }
        }
        const texts = [
          refused(() => ctx.scheduleActivity('echo', value)),
          refused(() => ctx.scheduleSubOrchestration('echo', value)),
          refused(() => ctx.startOrchestration('echo', 'other', value)),
          refused(() => ctx.continueAsNew(value)),
        ]
        return [texts, await ctx.scheduleActivity('echo', 'on')]
      },
    })
    for (const what of Object.keys(BAD)) {
      const [texts, on] = outputOf(await app.run(what, what))
      const names = ["activity 'echo'", "orchestration 'echo'", "orchestration 'echo'", 'continueAsNew']
      texts.forEach((text, n) => assert.ok(text.startsWith(`INVALID_PAYLOAD input of ${names[n]}`), text))
      assert.equal(on, 'on')
    }
  })

  test('as a result fails the activity, as an output the orchestration, with the reason', async (t) => {
    const app = await liveApp(t, {
      activities: { give: async (_ctx, what) => BAD[what][0] },
      orchestrations: { output: async (_ctx, what) => BAD[what][0] },
      main: async (ctx, what) => await ctx.scheduleActivity('give', what).catch(({ code, message }) => [code, message]),
    })
    for (const [what, [, why]] of Object.entries(BAD)) {
      const [code, message] = outputOf(await app.run(what, what))
      assert.equal(code, 'INVALID_PAYLOAD')
      assert.match(message, /^result of activity 'give'/)
      assert.match(message, why)
      await app.client.startOrchestration(`output ${what}`, 'output', what)
      const { status, error } = await app.end(`output ${what}`)
      assert.equal(status, 'Failed')
      assert.match(error, /output of orchestration 'output'/)
      assert.match(error, why)
    }
  })

  test('in an error is left out; the error itself is stored', async (t) => {
    const app = await liveApp(t, {
      activities: {
        async fail(_ctx, what) {
          throw Object.assign(new Error('with a bad field'), { bad: BAD[what][0], good: 1 })
        },
      },
      main: async (ctx, what) => await ctx.scheduleActivity('fail', what).catch((error) => [error.message, error.good, 'bad' in error]),
    })
    for (const what of Object.keys(BAD)) assert.deepEqual(outputOf(await app.run(what, what)), ['with a bad field', 1, false])
  })
})

describe('an error', { concurrency: 2 }, () => {
  const odd = ['a\0b', 'lone \ud800 surrogate', '"quoted" \\ \u2028 👍', '']
  test('of any text keeps its message, name, code, stack and fields; a retry policy copes with it', async (t) => {
    let tries = 0
    const app = await liveApp(t, {
      activities: {
        async fail(_ctx, n) {
          tries += 1
          const error = new Error(odd[n])
          Object.assign(error, { code: odd[n], [`field ${odd[n]}`]: odd[n] })
          error.stack = `stack ${odd[n]}`
          if (odd[n] !== '') error.name = odd[n]
          throw error
        },
      },
      async main(ctx, n) {
        const error = await ctx.scheduleActivity('fail', n, { retry: { maxAttempts: 2, baseDelayMs: 1, nonRetryable: ['nothing'] } }).catch((error) => error)
        return [error.message, error.name, error.code, error.stack, error[`field ${odd[n]}`]]
      },
    })
    for (const [n, text] of odd.entries()) {
      assert.deepEqual(outputOf(await app.run(`error-${n}`, n)), [text, text === '' ? 'Error' : text, text, `stack ${text}`, text])
      assert.equal(tries, 2 * (n + 1), 'the policy tried again')
    }
  })

  test('of any text is what a failed orchestration, its parent and the client see', async (t) => {
    const app = await liveApp(t, {
      orchestrations: {
        async child(_ctx, n) {
          throw new Error(odd[n])
        },
      },
      async main(ctx, n) {
        const error = await ctx.scheduleSubOrchestration('child', n).catch((error) => error)
        throw new Error(error.message)
      },
    })
    for (const [n, text] of odd.entries()) {
      const { status, error } = await app.run(`error-${n}`, n)
      assert.equal(status, 'Failed')
      assert.ok(error.includes(text), error)
    }
  })

  test('of 10 MiB is cut, and stored', async (t) => {
    const app = await liveApp(t, {
      activities: {
        async fail() {
          throw new Error('x'.repeat(10 * 1024 * 1024))
        },
      },
      main: async (ctx) => await ctx.scheduleActivity('fail').catch((error) => [error.message.length < 70_000, error.message.slice(-30)]),
    })
    const [isShort, tail] = outputOf(await app.run('one'))
    assert.ok(isShort)
    assert.match(tail, /more characters\)$/)
    await until(async () => (await app.rows()).activity_queue === 0)
  })
})
