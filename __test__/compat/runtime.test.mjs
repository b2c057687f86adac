// Table "Runtime" and the rules about versions and handlers that no node has.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Runtime } from '../../index.mjs'
import { gate, liveApp, liveWorld, outputOf, until } from '../support/live.mjs'

describe('registerActivity', () => {
  test('takes functions that answer at once or later', async (t) => {
    const app = await liveApp(t, {
      activities: { sync: (_ctx, n) => n + 1, later: async (_ctx, n) => n + 2 },
      *main(ctx) {
        return [yield ctx.scheduleActivity('sync', 1), yield ctx.scheduleActivity('later', 1)]
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), [2, 3])
  })

  test('twice under one name: the first function stays, with a warning', async (t) => {
    const world = await liveWorld(t)
    const warnings = []
    const note = (warning) => warning.code === 'HOLDFAST_DUPLICATE_REGISTRATION' && warnings.push(warning.message)
    process.on('warning', note)
    t.after(() => process.off('warning', note))
    const runtime = new Runtime(world.provider)
    const first = async () => 'first'
    runtime.registerActivityTyped('a', first)
    runtime.registerActivityTyped('a', first)
    runtime.registerActivity('a', async () => 'second')
    runtime.registerOrchestrationTyped('main', async (ctx) => await ctx.scheduleActivity('a'))
    runtime.registerOrchestrationVersionedTyped('main', '1.0.0', async () => 'another')
    await runtime.start()
    t.after(() => runtime.shutdown(0))
    assert.equal(outputOf(await world.run('a')), 'first')
    await until(() => warnings.length === 2)
    assert.deepEqual(warnings, [
      "activity 'a' is registered already; the first function stays",
      "orchestration 'main' version 1.0.0 is registered already; the first function stays",
    ])
  })

  test('of changed code on a second runtime of the process works', async (t) => {
    const world = await liveWorld(t)
    const first = await world.start({ activities: { a: async () => 'old' }, orchestrations: { main: async (ctx) => await ctx.scheduleActivity('a') } })
    assert.equal(outputOf(await world.run('one')), 'old')
    await first.shutdown()
    await world.start({ activities: { a: async () => 'new' }, orchestrations: { main: async (ctx) => await ctx.scheduleActivity('a') } })
    assert.equal(outputOf(await world.run('two')), 'new')
  })
})

describe('start and shutdown', () => {
  test('start resolves at once, a second one rejects, and so does a registration after it', async (t) => {
    const world = await liveWorld(t)
    const runtime = new Runtime(world.provider)
    await runtime.start()
    t.after(() => runtime.shutdown(0))
    await assert.rejects(runtime.start(), /started already/)
    assert.throws(() => runtime.registerActivity('late', async () => 1), /the runtime was started/)
  })

  test('shutdown waits for what runs, and is done early when nothing does', async (t) => {
    const started = gate()
    const app = await liveApp(t, {
      activities: {
        async work() {
          started.open()
          await new Promise((resolve) => setTimeout(resolve, 100))
          return 'finished'
        },
      },
      main: async (ctx) => await ctx.scheduleActivity('work'),
    })
    await app.client.startOrchestration('a', 'main')
    await started.promise
    await app.runtime.shutdown(10_000)
    assert.equal((await app.data('a', 'ActivityCompleted')).length <= 1, true)
    await app.start({ orchestrations: { main: async (ctx) => await ctx.scheduleActivity('work') }, activities: { work: async () => 'again' } })
    assert.equal(outputOf(await app.end('a')), 'finished')
  })

  test('runtimes that share a provider stop apart', async (t) => {
    const world = await liveWorld(t)
    const one = await world.start({ orchestrations: { main: async () => 1 } })
    await world.start({ orchestrations: { main: async () => 1 } })
    await one.shutdown()
    assert.equal(outputOf(await world.run('a')), 1)
  })
})

describe('options', () => {
  test('unknown names are refused, known ones accepted, with the alias of the guide', async (t) => {
    const { provider } = await liveWorld(t)
    assert.throws(() => new Runtime(provider, { workerConcurency: 1 }), /unknown option 'workerConcurency'/)
    assert.throws(() => new Runtime(provider, { maxAttempts: 0 }), /maxAttempts/)
    const runtime = new Runtime(provider, {
      dispatcherPollInterval: 50,
      orchestrationConcurrency: 4,
      workerConcurrency: 8,
      workerLockTimeoutMs: 2000,
      logFormat: 'pretty',
      logLevel: 'error',
      serviceName: 'compat',
      serviceVersion: '1.0.0',
      workerNodeId: 'compat-node',
    })
    await runtime.start()
    await runtime.shutdown()
  })
})

describe('versions', () => {
  const reports = (ctx, n) => [ctx.orchestrationVersion, n]
  const start = async (t, world, versions) => {
    const runtime = new Runtime(world.provider, { heartbeatIntervalMs: 100, staleAfterMs: 2000 })
    for (const [version, fn] of Object.entries(versions)) runtime.registerOrchestrationVersioned('main', version, fn)
    await runtime.start()
    t.after(() => runtime.shutdown(0))
    return runtime
  }

  test('a start without one takes the newest, by version order and not by the order of registration', async (t) => {
    const world = await liveWorld(t)
    await start(t, world, { '1.10.0': async (ctx, n) => reports(ctx, n), '1.9.0': async (ctx, n) => reports(ctx, n) })
    assert.deepEqual(outputOf(await world.run('a', 1)), ['1.10.0', 1])
  })

  test('must be semantic versions', async (t) => {
    const { provider } = await liveWorld(t)
    assert.throws(() => new Runtime(provider).registerOrchestrationVersioned('main', 'newest', async () => 1), /semantic version/)
  })

  test('an instance keeps the exact version it began with, over a restart with newer code', async (t) => {
    const world = await liveWorld(t)
    const old = async (ctx) => [ctx.orchestrationVersion, await ctx.waitForEvent('go')]
    const first = await start(t, world, { '1.0.0': old })
    await world.client.startOrchestration('a', 'main')
    await until(async () => (await world.client.getStatus('a')).status === 'Running')
    await first.shutdown()
    await start(t, world, { '1.0.0': old, '2.0.0': async () => 'new code' })
    await world.client.raiseEvent('a', 'go', 1)
    assert.deepEqual(outputOf(await world.end('a')), ['1.0.0', 1])
  })

  test('continue-as-new goes on with the newest, continueAsNewVersioned with the exact one', async (t) => {
    const world = await liveWorld(t)
    const body = function* (ctx, input) {
      if (input === 'newest') yield ctx.continueAsNew('stop')
      if (input === 'exact') yield ctx.continueAsNewVersioned('stop', '1.0.0')
      return ctx.orchestrationVersion
    }
    await start(t, world, { '1.0.0': body, '2.0.0': body })
    await world.client.startOrchestrationVersioned('a', 'main', 'newest', '1.0.0')
    assert.equal(outputOf(await world.end('a')), '2.0.0')
    await world.client.startOrchestrationVersioned('b', 'main', 'exact', '2.0.0')
    assert.equal(outputOf(await world.end('b')), '1.0.0')
  })

  test('of children and detached starts: exact where given, falsy means the newest', async (t) => {
    const world = await liveWorld(t)
    const runtime = new Runtime(world.provider)
    for (const version of ['1.0.0', '2.0.0']) runtime.registerOrchestrationVersioned('kid', version, async (ctx) => ctx.orchestrationVersion)
    runtime.registerOrchestration('main', function* (ctx) {
      yield ctx.startOrchestrationVersioned('kid', '1.0.0', 'side', null)
      return [
        yield ctx.scheduleSubOrchestration('kid'),
        yield ctx.scheduleSubOrchestrationVersioned('kid', '1.0.0'),
        yield ctx.scheduleSubOrchestrationVersioned('kid', ''),
        yield ctx.scheduleSubOrchestrationVersionedWithId('kid', '1.0.0', 'kid-with-id'),
      ]
    })
    await runtime.start()
    t.after(() => runtime.shutdown(0))
    assert.deepEqual(outputOf(await world.run('a')), ['2.0.0', '1.0.0', '2.0.0', '1.0.0'])
    assert.equal(outputOf(await world.end('side')), '1.0.0')
  })
})
