// Ids, names, reasons, tags and schemas: what can be stored works, what cannot is refused at the call with the argument
// and the rule; neither wedges anything, and a refused call stores nothing.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import pg from 'pg'

import { Client, PostgresProvider, Runtime } from '../../index.mjs'
import { liveApp, liveWorld, outputOf, until } from '../support/live.mjs'
import { databaseUrl, freshSchema } from '../support/world.mjs'

const NOTHING = { instance: 0, execution: 0, history: 0, turn_queue: 0, inbox: 0, activity_queue: 0, ended_activity: 0, kv: 0 }

const ODD = {
  quotes: `it's "quoted" \\ and; drop table instance; --`,
  emoji: '👩‍👩‍👧‍👦 ☂',
  'white space': ' \t\n ',
  'a template': '/*schema*/ ${x} $1 %s {}',
  'a prototype name': '__proto__',
  'a method name': 'constructor',
  '512 bytes': 'é'.repeat(256),
}

const REFUSED = {
  empty: ['', /must not be empty/],
  '10 000 characters': ['x'.repeat(10_000), /is 10000 bytes long, more than the limit of (512|1024)/],
  'a NUL': ['a\0b', /must not hold a NUL character/],
  'a lone surrogate': ['a\ud800', /must be well-formed Unicode/],
  'a number': [7, /must be a string, not a number/],
  nothing: [undefined, /must be/],
  null: [null, /must be/],
  'an object': [{ id: 1 }, /must be/],
}

const refusal = (argument, why) => (error) => {
  assert.equal(error.code, 'INVALID_ARGUMENT', error.stack)
  assert.match(error.message, argument)
  assert.match(error.message, why)
  return true
}

describe('an id or a name', () => {
  for (const [what, name] of Object.entries(ODD)) {
    test(`with ${what} works in every place`, async (t) => {
      const world = await liveWorld(t)
      await world.start({
        activities: { [name]: async (ctx, n) => [ctx.activityName, ctx.orchestrationName, ctx.instanceId, n] },
        orchestrations: {
          async [name](ctx, n) {
            const activity = await ctx.scheduleActivity(name, n)
            const event = await ctx.waitForEvent(name)
            const message = await ctx.dequeueEvent(name)
            const child = await ctx.scheduleSubOrchestrationWithId('child', `${name.slice(0, 128)}/child`)
            ctx.setCustomStatus(name)
            return { activity, event, message, child }
          },
          child: async (ctx) => [ctx.instanceId, ctx.parentInstanceId],
        },
      })
      await world.client.raiseEvent(name, name, 'event')
      await world.client.startOrchestration(name, name, 1)
      await world.client.enqueueEvent(name, name, 'message')
      const end = await world.end(name)
      assert.deepEqual(outputOf(end), {
        activity: [name, name, name, 1],
        event: 'event',
        message: 'message',
        child: [`${name.slice(0, 128)}/child`, name],
      })
      assert.equal(end.customStatus, name)
      const info = await world.client.getInstanceInfo(name)
      assert.deepEqual([info.instanceId, info.orchestrationName], [name, name])
      assert.equal((await world.client.readExecutionHistory(name, 1)).length > 0, true)
    })
  }

  test('that cannot be stored is refused by every call of the client, and nothing is stored', async (t) => {
    const world = await liveWorld(t)
    const { client } = world
    for (const [bad, why] of Object.values(REFUSED)) {
      const id = refusal(/^instance id/, why)
      await assert.rejects(client.startOrchestration(bad, 'main'), id)
      if (bad !== undefined && bad !== null) await assert.rejects(client.start('main', null, { id: bad }), id)
      await assert.rejects(client.raiseEvent(bad, 'go'), id)
      await assert.rejects(client.enqueueEvent(bad, 'work'), id)
      await assert.rejects(client.cancelInstance(bad), id)
      await assert.rejects(client.getStatus(bad), id)
      await assert.rejects(client.getInstanceInfo(bad), id)
      await assert.rejects(client.listExecutions(bad), id)
      await assert.rejects(client.readExecutionHistory(bad, 1), id)
      await assert.rejects(client.waitForOrchestration(bad, 1), id)
      await assert.rejects(client.startOrchestration('one', bad), refusal(/^orchestration name/, why))
      await assert.rejects(client.raiseEvent('one', bad), refusal(/^event name/, why))
      await assert.rejects(client.enqueueEvent('one', bad), refusal(/^queue name/, why))
    }
    await assert.rejects(client.startOrchestration('sub::1', 'main'), refusal(/instance id 'sub::1'/, /reserved/))
    await assert.rejects(client.startOrchestrationVersioned('one', 'main', null, 'newest'), refusal(/version/, /semantic version/))
    assert.deepEqual(await world.rows(), NOTHING)
  })

  test('that cannot be stored throws in the orchestration that gives it, and only there', async (t) => {
    const app = await liveApp(t, {
      orchestrations: { fine: async (ctx) => await ctx.scheduleTimer(1) },
      async main(ctx) {
        const texts = []
        const calls = [
          (bad) => ctx.scheduleActivity(bad),
          (bad) => ctx.waitForEvent(bad),
          (bad) => ctx.dequeueEvent(bad),
          (bad) => ctx.scheduleSubOrchestration(bad),
          (bad) => ctx.scheduleSubOrchestrationWithId('fine', bad),
          (bad) => ctx.startOrchestration('fine', bad),
          (bad) => ctx.scheduleActivity('x', null, { tag: bad ?? 1 }),
          (bad) => ctx.scheduleActivity('x').withTag(bad),
          (bad) => ctx.scheduleActivityOnSession('x', null, bad ?? 1),
        ]
        for (const [bad] of Object.values(REFUSED)) {
          for (const call of calls) {
            try {
              call(bad)
              texts.push(`taken: ${call} ${bad}`)
            } catch (error) {
              if (error.code !== 'INVALID_ARGUMENT') texts.push(`${error.code}: ${error.message}`)
            }
          }
        }
        return texts
      },
    })
    assert.deepEqual(outputOf(await app.run('one')), [])
    assert.deepEqual(await app.kinds('one'), ['OrchestrationStarted', 'OrchestrationCompleted'])
    await app.client.startOrchestration('two', 'fine')
    outputOf(await app.end('two'))
  })

  test('of a registration is checked before the start', async (t) => {
    const { provider } = await liveWorld(t)
    const runtime = new Runtime(provider)
    for (const [bad, why] of Object.values(REFUSED)) {
      if (typeof bad === 'object') continue
      assert.throws(() => runtime.registerActivity(bad, () => {}), refusal(/^activity name/, why))
      assert.throws(() => runtime.registerOrchestration(bad, () => {}), refusal(/^orchestration name/, why))
    }
  })
})

describe('a cancel reason', { concurrency: 2 }, () => {
  const main = async (ctx) => await ctx.waitForEvent('go')

  test('with a NUL or a lone surrogate is refused; the instance goes on', async (t) => {
    const app = await liveApp(t, { main })
    await app.client.startOrchestration('one', 'main')
    for (const bad of ['a\0b', '\ud800']) await assert.rejects(app.client.cancelInstance('one', bad), refusal(/^reason/, /well-formed Unicode without NUL/))
    await app.client.raiseEvent('one', 'go', 1)
    assert.equal(outputOf(await app.end('one')), 1)
  })

  test('of any other text is what the instance ends with', async (t) => {
    const app = await liveApp(t, { main })
    for (const [id, reason] of Object.entries({ ...ODD, long: 'x'.repeat(1_000_000) })) {
      await app.client.startOrchestration(id, 'main')
      await app.client.cancelInstance(id, reason)
      const { status, error } = await app.end(id)
      assert.equal(status, 'Failed')
      assert.ok(error === `canceled: ${reason}`, id)
    }
  })
})

describe('a custom status', () => {
  test('that cannot be stored throws where it is set, and the one before stays', async (t) => {
    const app = await liveApp(t, {
      async main(ctx) {
        ctx.setCustomStatus('good')
        const refused = []
        for (const bad of ['a\0b', '\ud800', 'x'.repeat(256 * 1024 + 1)]) {
          try {
            ctx.setCustomStatus(bad)
          } catch (error) {
            refused.push(error.code)
          }
        }
        await ctx.scheduleTimer(1)
        return refused
      },
    })
    const end = await app.run('one')
    assert.deepEqual(outputOf(end), ['INVALID_ARGUMENT', 'INVALID_ARGUMENT', 'INVALID_ARGUMENT'])
    assert.equal(end.customStatus, 'good')
  })
})

describe('a number at its edge', { concurrency: 2 }, () => {
  const max = Number.MAX_SAFE_INTEGER

  test('of a timer, a time limit, a retry policy or a wait works', async (t) => {
    const app = await liveApp(t, {
      activities: {
        quick: async () => 'quick',
        flaky: async (ctx) => {
          if (ctx.attempt === 1) throw new Error('once')
          return 'second'
        },
      },
      async main(ctx) {
        const retry = { maxAttempts: 4_294_967_295, baseDelayMs: 0, maxDelayMs: max, timeoutMs: max, totalTimeoutMs: max }
        const far = await ctx.race(ctx.scheduleTimer(max), ctx.scheduleActivity('quick', null, { timeoutMs: max }))
        return [far, await ctx.scheduleActivity('flaky', null, { retry })]
      },
    })
    await app.client.startOrchestration('one', 'main')
    const [far, second] = outputOf(await app.client.waitForOrchestration('one', 20_000))
    assert.deepEqual([far, second], [{ index: 1, value: 'quick' }, 'second'])
    assert.equal((await app.client.waitForOrchestration('one', max)).status, 'Completed')
  })

  test('of a delay that no time can hold waits for ever and harms nobody', async (t) => {
    const app = await liveApp(t, {
      activities: {
        async broken() {
          throw new Error('always')
        },
      },
      orchestrations: { fine: async () => 'fine' },
      async main(ctx) {
        const retry = { maxAttempts: 5, baseDelayMs: max, maxDelayMs: max, jitterPercent: 0 }
        return await ctx.race(ctx.waitForEvent('go'), ctx.scheduleActivity('broken', null, { retry }))
      },
    })
    await app.client.startOrchestration('one', 'main')
    await until(async () => (await app.sql('select 1 from activity_queue where attempt = 2')).length === 1, 'the retry is stored')
    await app.client.startOrchestration('two', 'fine')
    assert.equal(outputOf(await app.end('two')), 'fine')
    await app.client.raiseEvent('one', 'go', 1)
    assert.deepEqual(outputOf(await app.end('one')), { index: 0, value: 1 })
  })

  test('that is none is refused', async (t) => {
    const app = await liveApp(t, {
      async main(ctx) {
        const refused = []
        for (const bad of [-1, 0.5, Number.NaN, Infinity, 2 ** 53, '5', null, 5n]) {
          try {
            ctx.scheduleTimer(bad)
          } catch (error) {
            refused.push(error.code)
          }
        }
        return refused
      },
    })
    assert.deepEqual(outputOf(await app.run('one')), Array(8).fill('INVALID_ARGUMENT'))
    await assert.rejects(app.client.waitForOrchestration('one', -1), refusal(/timeoutMs/, /at least 0/))
    await assert.rejects(app.client.readExecutionHistory('one', 0), refusal(/executionId/, /at least 1/))
  })
})

describe('a schema name', { concurrency: 2 }, () => {
  for (const [what, make] of Object.entries({
    quotes: (name) => `${name}"a'b''c`,
    'dollars and emoji': (name) => `${name} $holdfast$ 🐘`,
    'upper case and dots': (name) => `${name}.Public.X`,
    'a comment and the words of the templates': (name) => `${name}/*schema name*//*schema*/--\\`,
    '63 bytes': (name) => name.padEnd(63, 'x'),
  })) {
    test(`with ${what} works`, async (t) => {
      const schema = make(freshSchema())
      const app = await liveApp(t, { schema, main: async (ctx) => await ctx.scheduleActivity('a'), activities: { a: async () => 'here' } })
      assert.equal(outputOf(await app.run('one')), 'here')
      assert.equal(app.provider.schema, schema)
      // A second provider finds the schema as it is.
      const again = await PostgresProvider.connectWithSchema(databaseUrl(), schema)
      assert.equal(outputOf(await new Client(again).waitForOrchestration('one')), 'here')
      await again.close()
    })
  }

  test('that PostgreSQL cannot hold is refused before anything is made', async (t) => {
    const session = new pg.Client(databaseUrl())
    await session.connect()
    t.after(() => session.end())
    for (const bad of ['', 'x'.repeat(64), 'a\0b', '\ud800', 7, null]) {
      await assert.rejects(PostgresProvider.connectWithSchema(databaseUrl(), bad), refusal(/^schema/, /must|limit/))
    }
    await assert.rejects(PostgresProvider.connectWithSchema(databaseUrl(), 'pg_mine'), (error) => /pg_/.test(error.message))
    const { rows } = await session.query("select 1 from pg_namespace where nspname like 'xxx%' or nspname = 'pg_mine'")
    assert.deepEqual(rows, [])
  })
})
