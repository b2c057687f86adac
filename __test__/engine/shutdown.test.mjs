// Starting and stopping as a service does it: nothing is lost, nothing hangs, the process ends by itself.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { describe, test } from 'node:test'

import { Client, PostgresProvider, Runtime } from '../../index.mjs'
import { startTestServer } from '../../scripts/lib/server.mjs'
import { gate, liveApp, liveWorld, outputOf, until } from '../support/live.mjs'
import { databaseUrl, freshSchema } from '../support/world.mjs'

/** What the engine may take on top of the grace: the abort's 200 ms, and 500 ms for each of two goodbyes. */
const STOP_MS = 1000 + 200

const timed = async (promise) => {
  const from = Date.now()
  const value = await promise
  return [Date.now() - from, value]
}

const owners = async (world) =>
  (await world.sql('select owner from turn_queue where owner is not null union all select owner from activity_queue where owner is not null union all select id from node')).length

/** An activity that runs until its gate opens or it is told to stop. */
function held() {
  const started = gate()
  const end = gate()
  const reasons = []
  let runs = 0
  const body = (ctx) => {
    runs += 1
    started.open()
    return new Promise((resolve, reject) => {
      end.promise.then(resolve)
      ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason, reasons.push(ctx.signal.reason.code)))
    })
  }
  return { body, started, end, reasons, runs: () => runs }
}

const main = async (ctx) => await ctx.scheduleActivity('step')

describe('a shutdown', { concurrency: 4 }, () => {
  test('waits for running work within its grace, and its result is recorded', async (t) => {
    const step = held()
    const app = await liveApp(t, { main, activities: { step: step.body } })
    await app.client.startOrchestration('one', 'main')
    await step.started.promise
    const stopped = app.runtime.shutdown(20_000)
    step.end.open('finished')
    await stopped
    assert.equal(await owners(app), 0)
    await app.start({ orchestrations: { main }, activities: { step: () => assert.fail('it ran again') } })
    assert.equal(outputOf(await app.end('one')), 'finished')
    assert.deepEqual([step.runs(), step.reasons], [1, []])
  })

  test('tells work that outlasts its grace to stop, and hands it back', async (t) => {
    const step = held()
    const app = await liveApp(t, { main, activities: { step: step.body } })
    await app.client.startOrchestration('one', 'main')
    await step.started.promise
    const [took] = await timed(app.runtime.shutdown(300))
    assert.ok(took >= 300 && took < 300 + STOP_MS, `it took ${took} ms`)
    assert.deepEqual(step.reasons, ['SHUTDOWN'])
    assert.equal(await owners(app), 0)
    await app.start({ orchestrations: { main }, activities: { step: async (ctx) => `delivery ${ctx.delivery}` } })
    assert.equal(outputOf(await app.end('one')), 'delivery 2')
  })

  test('does not wait for work that ignores the signal', async (t) => {
    const started = gate()
    const app = await liveApp(t, { main, activities: { step: () => new Promise(() => started.open()) } })
    await app.client.startOrchestration('one', 'main')
    await started.promise
    const [took] = await timed(app.runtime.shutdown(0))
    assert.ok(took < STOP_MS, `it took ${took} ms`)
    assert.equal(await owners(app), 0)
  })

  test('hands back what has not begun, with its delivery', async (t) => {
    const step = held()
    const app = await liveApp(t, {
      activities: { step: step.body },
      options: { workerConcurrency: 3 },
      main: async (ctx) => await ctx.all(Array.from({ length: 20 }, () => ctx.scheduleActivity('step'))),
    })
    await app.client.startOrchestration('one', 'main')
    await until(() => step.runs() === 3, 'the slots are full')
    await app.runtime.shutdown(0)
    const rows = await app.sql('select deliveries, count(*)::int as n from activity_queue where owner is null group by 1 order by 1')
    assert.deepEqual(rows, [{ deliveries: 0, n: 17 }, { deliveries: 1, n: 3 }])
  })

  test('of a busy runtime loses nothing: another one finishes all of it', async (t) => {
    const world = await liveWorld(t)
    const handlers = {
      activities: { step: async (_ctx, n) => n + 1 },
      orchestrations: {
        async main(ctx, n) {
          for (let i = 0; i < 5; i++) n = await ctx.scheduleActivity('step', n)
          return n
        },
      },
    }
    const ids = Array.from({ length: 60 }, (_, n) => `busy-${n}`)
    const first = await world.start(handlers)
    await Promise.all(ids.map((id, n) => world.client.startOrchestration(id, 'main', n)))
    await until(async () => (await world.sql("select 1 from history where kind = 'ActivityCompleted' limit 1")).length === 1, 'it is under way')
    await first.shutdown(0)
    assert.equal(await owners(world), 0)
    await world.start(handlers)
    for (const [n, id] of ids.entries()) assert.equal(outputOf(await world.end(id)), n + 5)
    for (const id of ids) {
      const kinds = await world.kinds(id)
      assert.equal(kinds.filter((kind) => kind === 'ActivityCompleted').length, 5)
    }
  })

  test('happens once: every call gives the same promise, also of a runtime that never started', async (t) => {
    const { provider, runtime } = await liveApp(t, { main })
    assert.equal(runtime.shutdown(), runtime.shutdown(5))
    await runtime.shutdown()
    const idle = new Runtime(provider)
    await idle.shutdown()
    await idle[Symbol.asyncDispose]()
    await assert.rejects(idle.start(), { code: 'RUNTIME_STARTED' })
  })

  test('of the provider ends the waits of its clients and refuses later calls', async (t) => {
    const provider = await PostgresProvider.connectWithSchema(databaseUrl(), freshSchema())
    t.after(() => provider.close())
    const client = new Client(provider)
    await client.startOrchestration('one', 'nobody')
    const waiting = client.waitForOrchestration('one', 60_000)
    const outcome = Promise.race([waiting.then(assert.fail, (error) => error)])
    await provider.close()
    assert.equal((await outcome).code, 'CLOSED')
    for (const call of [() => client.getStatus('one'), () => client.startOrchestration('two', 'x'), () => client.raiseEvent('one', 'x')]) {
      await assert.rejects(call, { code: 'CLOSED' })
    }
  })
})

describe('a start', { concurrency: 2 }, () => {
  test('happens once; handlers come before it', async (t) => {
    const { runtime } = await liveApp(t, { main })
    await assert.rejects(runtime.start(), { code: 'RUNTIME_STARTED' })
    assert.throws(() => runtime.registerActivity('late', () => {}), { code: 'RUNTIME_STARTED' })
    assert.throws(() => runtime.registerOrchestration('late', () => {}), { code: 'RUNTIME_STARTED' })
    await runtime.shutdown()
    await assert.rejects(runtime.start(), { code: 'RUNTIME_STARTED' })
  })

  test('of a provider without a server rejects, and soon', async () => {
    const [took, error] = await timed(PostgresProvider.connect('postgres://127.0.0.1:1/none').then(assert.fail, (error) => error))
    assert.ok(took < 10_000, `it took ${took} ms`)
    assert.equal(error.retryable, true)
    assert.match(error.message, /connect/i)
  })

  test('of a provider whose server never answers rejects within its time limit', async (t) => {
    const mute = createServer(() => {})
    mute.listen(0, '127.0.0.1')
    await once(mute, 'listening')
    t.after(() => mute.close())
    const url = `postgres://127.0.0.1:${mute.address().port}/none`
    const [took, error] = await timed(PostgresProvider.connect(url, { connectTimeoutMs: 300, retryAttempts: 0 }).then(assert.fail, (error) => error))
    assert.ok(took < 5000, `it took ${took} ms`)
    assert.equal(error.retryable, true)
  })
})

describe('without its database', () => {
  test('a runtime does not start, a running one stops in time, and the provider closes', async (t) => {
    const server = await startTestServer()
    t.after(() => server.stop())
    const provider = await PostgresProvider.connect(server.url)
    const step = held()
    const running = new Runtime(provider)
    running.registerActivity('step', step.body)
    running.registerOrchestration('main', main)
    await running.start()
    const client = new Client(provider)
    await client.startOrchestration('one', 'main')
    await step.started.promise
    await server.stop()

    await assert.rejects(client.startOrchestration('two', 'main'), (error) => error.retryable === true)
    const late = new Runtime(provider)
    late.registerOrchestration('main', main)
    await assert.rejects(late.start(), (error) => error.retryable === true)
    assert.ok((await timed(late.shutdown()))[0] < STOP_MS)

    const [took] = await timed(running.shutdown(500))
    assert.ok(took < 500 + STOP_MS, `it took ${took} ms`)
    assert.deepEqual(step.reasons, ['SHUTDOWN'])
    // Its documented limit is 5 s.
    const [closing] = await timed(provider.close())
    assert.ok(closing < 6000, `closing took ${closing} ms`)
  })
})

describe('SH-05: the process ends by itself', { concurrency: 2 }, () => {
  const entry = new URL('../../index.mjs', import.meta.url).href
  const head = `
    import { Client, PostgresProvider, Runtime } from ${JSON.stringify(entry)}
    const provider = await PostgresProvider.connectWithSchema(process.env.URL, process.env.SCHEMA)
    const client = new Client(provider)
    const runtime = new Runtime(provider)
    runtime.registerOrchestration('main', async (ctx, n) => n + 1)`
  const run = 'await runtime.start(); await client.startOrchestration("one", "main", 1); console.log((await client.waitForOrchestration("one")).output)'
  const programs = {
    'after shutdown and close': [`${run}; await runtime.shutdown(); await provider.close()`, '2\n'],
    'after shutdown alone': [`${run}; await runtime.shutdown()`, '2\n'],
    'after close alone, with only a client': ['await client.startOrchestration("one", "main"); await provider.close(); console.log("sent")', 'sent\n'],
    'with only a client and no close': ['await client.startOrchestration("one", "main"); console.log("sent")', 'sent\n'],
    'after a start that failed': ['await runtime.start().then(() => runtime.start()).catch((error) => console.log(error.code)); await runtime.shutdown()', 'RUNTIME_STARTED\n'],
    'after a timer is left waiting': [
      `runtime.registerOrchestration('sleep', async (ctx) => await ctx.scheduleTimer(3_600_000))
       await runtime.start(); await client.startOrchestration('long', 'sleep')
       for (;;) { if ((await client.getStatus('long')).status === 'Running') break }
       await runtime.shutdown(); console.log('asleep')`,
      'asleep\n',
    ],
  }
  for (const [when, [program, expected]] of Object.entries(programs)) {
    test(when, async (t) => {
      const env = { ...process.env, URL: databaseUrl(), SCHEMA: freshSchema() }
      const child = spawn(process.execPath, ['--input-type=module', '-e', `${head}\n${program}`], { env, stdio: ['ignore', 'pipe', 'pipe'] })
      let output = ''
      child.stdout.on('data', (text) => (output += text))
      child.stderr.on('data', (text) => (output += text))
      const tooLong = setTimeout(() => child.kill('SIGKILL'), 20_000)
      const [code, signal] = await once(child, 'close')
      clearTimeout(tooLong)
      assert.deepEqual([code, signal, output], [0, null, expected])
    })
  }
})
