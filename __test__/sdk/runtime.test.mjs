// The runtime and the provider, as a user has them: register, start, stop, addresses, both module forms.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import * as esm from '../../index.mjs'
import { fakeProvider, holdfast, startApp } from '../support/app.mjs'

const { Client, PostgresProvider, Runtime, defineActivity, defineEvent, defineOrchestration } = holdfast
const coded = (code, text) => (error) => error instanceof holdfast.HoldfastError && error.code === code && text.test(error.message)
const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..')

for (const cold of [false, true]) {
  test(`a checkout runs to its end, frames ${cold ? 'replayed every turn' : 'kept'}`, async (t) => {
    const checkout = {
      async asynchronous(ctx, order) {
        const receipt = await ctx.scheduleActivity('charge', order)
        const [mail] = await ctx.all([ctx.scheduleActivity('mail', receipt), ctx.scheduleTimer(1)])
        return { ...receipt, mail: mail.ok }
      },
      *generator(ctx, order) {
        const receipt = yield ctx.scheduleActivity('charge', order)
        const [mail] = yield ctx.all([ctx.scheduleActivity('mail', receipt), ctx.scheduleTimer(1)])
        return { ...receipt, mail: mail.ok }
      },
    }
    const { client } = await startApp(t, {
      cold,
      activities: { charge: async (ctx, order) => ({ id: order.id, key: ctx.idempotencyKey }), mail: (ctx, receipt) => `mail ${receipt.id}` },
      orchestrations: checkout,
    })
    for (const name of Object.keys(checkout)) {
      await client.startOrchestration(name, name, { id: 17 })
      const { status, output } = await client.waitForOrchestration(name)
      assert.deepEqual([status, output], ['Completed', { id: 17, key: `${name}/1/2`, mail: 'mail 17' }])
    }
  })
}

test('children, detached starts, continue-as-new with carried messages and status', async (t) => {
  const { client } = await startApp(t, {
    orchestrations: {
      *main(ctx) {
        const made = yield ctx.scheduleSubOrchestration('kid', 1)
        const named = yield ctx.scheduleSubOrchestrationWithId('kid', 'my-kid', 2)
        const [again] = yield ctx.all([ctx.scheduleSubOrchestrationWithId('kid', 'my-kid', 2)])
        yield ctx.startOrchestration('kid', 'side', 3)
        return [made, named, again.err, again.reason instanceof holdfast.InstanceExistsError]
      },
      kid: async (ctx, n) => `${ctx.parentInstanceId ?? 'nobody'}'s ${n}`,
      async count(ctx, n) {
        if (n === 0) ctx.setCustomStatus('counting')
        const message = await ctx.dequeueEvent('q')
        return message === 'stop' ? [n, ctx.getCustomStatus(), ctx.executionId] : ctx.continueAsNew(n + 1)
      },
    },
  })
  await client.startOrchestration('one', 'main')
  assert.deepEqual((await client.waitForOrchestration('one')).output, ["one's 1", "one's 2", "sub-orchestration instance id 'my-kid' already exists", true])
  assert.equal((await client.waitForOrchestration('side')).output, "nobody's 3")
  await client.startOrchestration('two', 'count', 0)
  for (const message of ['a', 'b', 'stop']) await client.enqueueEvent('two', 'q', message)
  assert.deepEqual((await client.waitForOrchestration('two')).output, [2, 'counting', 3])
})

test('the newest version runs unless one is named', async (t) => {
  const { provider } = await fakeProvider()
  const runtime = new Runtime(provider)
  runtime.registerOrchestration('main', async (ctx) => ctx.orchestrationVersion)
  runtime.registerOrchestrationVersioned('main', '1.10.0', async (ctx) => ctx.orchestrationVersion)
  runtime.registerOrchestrationVersioned('main', '1.9.0', async (ctx) => ctx.orchestrationVersion)
  await runtime.start()
  t.after(() => runtime.shutdown())
  const client = new Client(provider)
  await client.startOrchestration('newest', 'main')
  await client.startOrchestrationVersioned('named', 'main', null, '1.9.0')
  assert.deepEqual([(await client.waitForOrchestration('newest')).output, (await client.waitForOrchestration('named')).output], ['1.10.0', '1.9.0'])
})

test('definitions stand wherever a name can', async (t) => {
  const charge = defineActivity('charge', async (ctx, order) => order.cents)
  const approved = defineEvent('approved')
  const checkout = defineOrchestration('checkout', function* (ctx, order) {
    const cents = yield* ctx.scheduleActivity(charge, order)
    return [cents, yield* ctx.waitForEvent(approved), ctx.orchestrationVersion]
  }, { version: '2.0.0' })
  const { provider } = await fakeProvider()
  const runtime = new Runtime(provider)
  runtime.registerActivity(charge)
  runtime.registerOrchestration(checkout)
  await runtime.start()
  t.after(() => runtime.shutdown())
  const handle = await new Client(provider).start(checkout, { cents: 5 })
  assert.match(handle.id, /^[0-9a-f-]{36}$/)
  await handle.raise(approved, { by: 'me' })
  assert.deepEqual(await handle.result(), [5, { by: 'me' }, '2.0.0'])
  const client = new Client(provider)
  await client.startOrchestration('named', checkout, { cents: 6 })
  await client.raiseEvent('named', approved, 1)
  assert.deepEqual((await client.waitForOrchestration('named')).output, [6, 1, '2.0.0'])
})

test('a definition of the wrong kind is refused', async () => {
  const { provider } = await fakeProvider()
  const runtime = new Runtime(provider)
  assert.throws(() => runtime.registerOrchestration(defineActivity('a', () => 1)), coded('INVALID_ARGUMENT', /not the definition of an activity/))
  assert.throws(() => defineActivity('a', 5), coded('INVALID_ARGUMENT', /activity 'a' needs a function, not a number/))
  assert.throws(() => defineOrchestration('', async () => {}), coded('INVALID_ARGUMENT', /must not be empty/))
})

test('registering without a function, under a reserved name or after the start is refused', async (t) => {
  const { provider } = await fakeProvider()
  const runtime = new Runtime(provider)
  t.after(() => runtime.shutdown())
  const fn = async () => 1
  runtime.registerActivity('a', fn)
  runtime.registerOrchestration('o', fn)
  assert.throws(() => runtime.registerActivity('b'), coded('INVALID_ARGUMENT', /activity 'b' needs a function, not undefined/))
  assert.throws(() => runtime.registerActivity('__holdfast_x', fn), coded('INVALID_ARGUMENT', /reserved/))
  assert.throws(() => runtime.registerOrchestrationVersioned('o', 'newest', fn), coded('INVALID_ARGUMENT', /semantic version/))
  await runtime.start()
  assert.throws(() => runtime.registerActivity('late', fn), coded('RUNTIME_STARTED', /the runtime was started/))
  await assert.rejects(runtime.start(), coded('RUNTIME_STARTED', /started already/))
})

test('start tells the engine what this runtime can run', async (t) => {
  const { log } = await startApp(t, { activities: { a: () => 1 }, orchestrations: { o: async () => 1 } })
  assert.deepEqual(log.handlers, { orchestrations: [{ name: 'o', version: '1.0.0' }], activities: ['a'] })
})

test('two runtimes in one process have their own functions', async (t) => {
  const outputs = []
  for (const word of ['first', 'second']) {
    const { client } = await startApp(t, { orchestrations: { main: async () => word } })
    await client.startOrchestration('one', 'main')
    outputs.push((await client.waitForOrchestration('one')).output)
  }
  assert.deepEqual(outputs, ['first', 'second'])
})

test('changed code is found on another runtime', async (t) => {
  const { provider } = await fakeProvider({ cold: true })
  const client = new Client(provider)
  const run = async (name) => {
    const runtime = new Runtime(provider)
    runtime.registerOrchestration('main', async (ctx) => {
      await ctx.waitForEvent(name)
      await ctx.waitForEvent('end')
    })
    await runtime.start()
    return runtime
  }
  await client.startOrchestration('one', 'main')
  const before = await run('old')
  await client.raiseEvent('one', 'old')
  await assert.rejects(client.waitForOrchestration('one', 20), /timed out/)
  await before.shutdown()
  const after = await run('new')
  t.after(() => after.shutdown())
  await client.raiseEvent('one', 'end')
  const { status, error } = await client.waitForOrchestration('one')
  assert.equal(status, 'Failed')
  assert.match(error, /^nondeterministic: /)
})

test('a shutdown with a bad time is refused and leaves the runtime to be stopped', async (t) => {
  const { runtime, log } = await startApp(t, { orchestrations: { main: async () => 1 } })
  await assert.rejects(runtime.shutdown(-1), coded('INVALID_ARGUMENT', /timeoutMs/))
  await runtime.shutdown(5)
  assert.deepEqual(log.calls.filter(([call]) => call === 'shutdown'), [['shutdown', 5]])
})

test('shutdown waits for running work, is the same promise twice, and works before the start', async (t) => {
  let release
  const { client, runtime, log } = await startApp(t, {
    activities: { slow: () => new Promise((resolve) => (release = resolve)) },
    orchestrations: { main: async (ctx) => await ctx.scheduleActivity('slow') },
  })
  await client.startOrchestration('one', 'main')
  while (release === undefined) await new Promise(setImmediate)
  const stopping = runtime.shutdown(10_000)
  assert.equal(runtime.shutdown(), stopping)
  release('finished')
  await stopping
  assert.deepEqual(log.answers.at(-1).activities, [{ h: 1, ok: 'finished' }])
  assert.deepEqual(log.calls.filter(([call]) => call === 'shutdown'), [['shutdown', 10_000]])
  await assert.rejects(runtime.start(), coded('RUNTIME_STARTED', /shut down/))
  const { provider } = await fakeProvider()
  await new Runtime(provider).shutdown()
})

test('work that does not end within the time is told to stop and handed back', async (t) => {
  let isRunning = false
  const { client, runtime, log } = await startApp(t, {
    activities: {
      forever: (ctx) =>
        new Promise((_, reject) => {
          isRunning = true
          ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))
        }),
    },
    orchestrations: { main: async (ctx) => await ctx.scheduleActivity('forever') },
  })
  await client.startOrchestration('one', 'main')
  while (!isRunning) await new Promise(setImmediate)
  await runtime.shutdown(1)
  assert.deepEqual(log.answers.at(-1).activities, [{ h: 1, abandon: true }])
})

test('await using stops a runtime and closes a provider', async () => {
  const { provider, log } = await fakeProvider()
  const runtime = new Runtime(provider)
  await runtime.start()
  await runtime[Symbol.asyncDispose]()
  await provider[Symbol.asyncDispose]()
  await provider.close()
  assert.deepEqual(log.calls.map(([call]) => call), ['connect', 'shutdown', 'close'])
})

test('a rejected promise that orchestration code leaves behind is warned about and does not end the process', () => {
  const { stdout, stderr, status } = spawnSync(process.execPath, ['__test__/support/left-behind.mjs'], { cwd: root, encoding: 'utf8' })
  assert.deepEqual([stdout, status], ['still here\ncanceled: enough\n', 0])
  assert.match(stderr, /HOLDFAST_UNHANDLED_REJECTION.*orchestration 'main' \(instance 'one'\) left a rejected promise unhandled: Error: left behind/)
})

test('any other rejected promise ends the process as it always did', () => {
  const { stdout, stderr, status } = spawnSync(process.execPath, ['__test__/support/left-behind.mjs', 'foreign'], { cwd: root, encoding: 'utf8' })
  assert.deepEqual([stdout, status], ['still here\ncanceled: enough\n', 1])
  assert.match(stderr, /Error: not from an orchestration/)
})

test('a provider says where its URL came from', async (t) => {
  const { log } = await fakeProvider()
  const set = (name, value) => {
    const before = process.env[name]
    const put = (text) => (text === undefined ? delete process.env[name] : (process.env[name] = text))
    put(value)
    t.after(() => put(before))
  }
  for (const name of ['HOLDFAST_DATABASE_URL', 'DATABASE_URL', 'NODE_ENV']) set(name, undefined)
  assert.equal((await PostgresProvider.connect('postgres://given/db')).source, 'argument')
  set('DATABASE_URL', 'postgres://second/db')
  const second = await PostgresProvider.connect()
  set('HOLDFAST_DATABASE_URL', 'postgres://first/db')
  const first = await PostgresProvider.connectWithSchema(undefined, 'my schema', { maxClients: 2 })
  assert.deepEqual([first.source, second.source, first.schema, second.schema], ['HOLDFAST_DATABASE_URL', 'DATABASE_URL', 'my schema', 'holdfast'])
  assert.deepEqual(log.calls.slice(-2), [['connect', 'postgres://second/db', 'holdfast', {}], ['connect', 'postgres://first/db', 'my schema', { maxClients: 2 }]])
  assert.deepEqual(first.stats(), { pool: { total: 0 }, counters: {} })
  assert.equal(await first.warm(), undefined)
})

test('the embedded server is never started in production', async (t) => {
  await fakeProvider()
  const before = { ...process.env }
  t.after(() => Object.assign(process.env, before))
  delete process.env.HOLDFAST_DATABASE_URL
  delete process.env.DATABASE_URL
  process.env.NODE_ENV = 'production'
  t.after(() => before.NODE_ENV ?? delete process.env.NODE_ENV)
  await assert.rejects(PostgresProvider.connect(), coded('NO_DATABASE_URL', /HOLDFAST_DATABASE_URL or DATABASE_URL.*NODE_ENV=production/))
})

test('a bad address, schema or option is refused; a failing connection keeps its class', async () => {
  await fakeProvider()
  await assert.rejects(PostgresProvider.connect(''), coded('INVALID_ARGUMENT', /url must be a non-empty string/))
  await assert.rejects(PostgresProvider.connect(5), coded('INVALID_ARGUMENT', /url must be/))
  await assert.rejects(PostgresProvider.connectWithSchema('postgres://x', ''), coded('INVALID_ARGUMENT', /schema must not be empty/))
  await assert.rejects(PostgresProvider.connectWithSchema('postgres://x', 's'.repeat(64)), coded('INVALID_ARGUMENT', /schema is 64 bytes/))
  await assert.rejects(PostgresProvider.connect('postgres://x', { maxClients: 0 }), coded('INVALID_OPTION', /maxClients: 0/))
  await assert.rejects(PostgresProvider.connect('postgres://refused'), (error) => error instanceof holdfast.CircuitOpenError && error.retryAfterMs === 2000)
})

test('both module forms export the same names, the ES module a default, too', () => {
  const { default: whole, ...names } = esm
  assert.deepEqual(Object.keys(names).sort(), Object.keys(holdfast).sort())
  assert.deepEqual(Object.keys(whole).sort(), Object.keys(holdfast).sort())
})

test('importing does nothing: the process ends by itself and the addon is not loaded', () => {
  const scripts = [
    ["const h = require('./index.js'); process.stdout.write(typeof h.Runtime)"],
    ["import { Runtime } from './index.mjs'; process.stdout.write(typeof Runtime)", '--input-type=module'],
  ]
  for (const [script, ...flags] of scripts) {
    const { stdout, stderr, status } = spawnSync(process.execPath, [...flags, '-e', script], { cwd: root, encoding: 'utf8' })
    assert.deepEqual([stdout, stderr, status], ['function', '', 0])
  }
})
