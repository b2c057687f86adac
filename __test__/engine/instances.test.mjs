// Instances and their kin through the public API on the real engine: starts, children, status, several runtimes.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { Worker } from 'node:worker_threads'

import { InstanceExistsError, OrchestrationFailedError } from '../../index.mjs'
import { liveApp, liveWorld, outputOf, until } from '../support/live.mjs'

describe('a child', { concurrency: 4 }, () => {
  const orchestrations = {
    double: async (_ctx, n) => n * 2,
    broken: async () => {
      throw Object.assign(new RangeError('too far'), { code: 'E_FAR', by: 3 })
    },
    who: async (ctx) => [ctx.instanceId, ctx.parentInstanceId],
  }

  test('gives its output, under an id of its own or a given one', async (t) => {
    const app = await liveApp(t, {
      orchestrations,
      main: async (ctx) => [
        await ctx.scheduleSubOrchestration('double', 4),
        await ctx.scheduleSubOrchestrationWithId('who', 'my-child'),
        await ctx.scheduleSubOrchestration('who'),
      ],
    })
    const [double, [mine, parent], [automatic]] = outputOf(await app.run('one'))
    assert.deepEqual([double, mine, parent], [8, 'my-child', 'one'])
    assert.match(automatic, /^one::sub::\d+$/)
    assert.equal((await app.client.getInstanceInfo('my-child')).parentInstanceId, 'one')
  })

  test('that fails throws its error with name, message, code and fields', async (t) => {
    const app = await liveApp(t, {
      orchestrations,
      async main(ctx) {
        try {
          await ctx.scheduleSubOrchestration('broken')
        } catch (error) {
          const { name, message, code, by, orchestrationName } = error
          return { name, message, code, by, orchestrationName, is: error instanceof OrchestrationFailedError }
        }
      },
    })
    const expected = { name: 'RangeError', message: 'too far', code: 'E_FAR', by: 3, orchestrationName: 'broken', is: true }
    assert.deepEqual(outputOf(await app.run('one')), expected)
  })

  test('whose id is taken throws InstanceExistsError, and the other instance goes on', async (t) => {
    const app = await liveApp(t, {
      orchestrations: { ...orchestrations, waiting: async (ctx) => await ctx.waitForEvent('go') },
      main: async (ctx) => await ctx.scheduleSubOrchestrationWithId('double', 'taken', 1).catch((error) => [error instanceof InstanceExistsError, error.code]),
    })
    await app.client.startOrchestration('taken', 'waiting')
    assert.deepEqual(outputOf(await app.run('one')), [true, 'INSTANCE_EXISTS'])
    await app.client.raiseEvent('taken', 'go', 'undisturbed')
    assert.equal(outputOf(await app.end('taken')), 'undisturbed')
  })

  test('of a cancelled parent is cancelled, and so is its activity', async (t) => {
    let aborted = false
    const app = await liveApp(t, {
      activities: {
        slow: (ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason, (aborted = true)))),
      },
      orchestrations: { child: async (ctx) => await ctx.scheduleActivity('slow') },
      main: async (ctx) => await ctx.scheduleSubOrchestrationWithId('child', 'kid'),
    })
    await app.client.startOrchestration('one', 'main')
    await until(async () => (await app.sql('select 1 from activity_queue where owner is not null')).length === 1, 'the activity runs')
    await app.client.cancelInstance('one', 'enough')
    for (const id of ['one', 'kid']) {
      const { status, error } = await app.end(id)
      assert.equal(status, 'Failed')
      assert.match(error, /^canceled: /)
    }
    await until(() => aborted, 'the activity was told to stop')
  })

  test('that nobody waits for is started at once and outlives its starter', async (t) => {
    const app = await liveApp(t, {
      orchestrations: { waiting: async (ctx) => [await ctx.waitForEvent('go'), ctx.parentInstanceId ?? null] },
      async main(ctx) {
        await ctx.startOrchestration('waiting', 'detached')
        await ctx.startOrchestration('waiting', 'detached')
        return 'left'
      },
    })
    assert.equal(outputOf(await app.run('one')), 'left')
    await app.client.raiseEvent('detached', 'go', 1)
    assert.deepEqual(outputOf(await app.end('detached')), [1, null])
  })
})

describe('a start', { concurrency: 4 }, () => {
  const waiting = async (ctx, input) => [input, await ctx.waitForEvent('go')]

  test('of an id that exists says so and leaves the running instance alone', async (t) => {
    const app = await liveApp(t, { main: waiting })
    assert.deepEqual(await app.client.startOrchestration('one', 'main', 1), { created: true })
    assert.deepEqual(await app.client.startOrchestration('one', 'main', 1), { created: false })
    assert.deepEqual(await app.client.startOrchestration('one', 'other', 2), { created: false })
    assert.equal((await app.client.start('main', 1, { id: 'one' })).id, 'one')
    await assert.rejects(app.client.start('main', 2, { id: 'one' }), InstanceExistsError)
    await assert.rejects(app.client.start('other', 1, { id: 'one' }), InstanceExistsError)
    await app.client.raiseEvent('one', 'go', 'on')
    assert.deepEqual(outputOf(await app.end('one')), [1, 'on'])
    assert.deepEqual(await app.client.startOrchestration('one', 'main', 1), { created: false })
  })

  test('that twenty callers make at once creates one instance', async (t) => {
    let bodies = 0
    const app = await liveApp(t, {
      activities: { count: async () => (bodies += 1) },
      main: async (ctx, input) => [input, await ctx.scheduleActivity('count')],
    })
    const starts = await Promise.all(Array.from({ length: 20 }, () => app.client.startOrchestration('one', 'main', 'x')))
    assert.equal(starts.filter(({ created }) => created).length, 1)
    assert.deepEqual(outputOf(await app.end('one')), ['x', 1])
    assert.equal(bodies, 1)
  })

  test('of an orchestration that no runtime has waits, and runs once a runtime has it', async (t) => {
    const world = await liveWorld(t)
    await world.start({ orchestrations: { other: async () => 'other' } })
    await world.client.startOrchestration('one', 'late', 1)
    await world.client.startOrchestration('two', 'other')
    assert.equal(outputOf(await world.end('two')), 'other')
    assert.equal((await world.client.getStatus('one')).status, 'NotFound')
    await world.start({ orchestrations: { late: async (_ctx, n) => n + 1 } })
    assert.equal(outputOf(await world.end('one')), 2)
  })

  test('of an exact version runs that version', async (t) => {
    const world = await liveWorld(t)
    const { Runtime } = await import('../../index.mjs')
    const runtime = new Runtime(world.provider)
    for (const version of ['1.0.0', '1.10.0', '1.9.0']) {
      runtime.registerOrchestrationVersioned('main', version, async (ctx) => ctx.orchestrationVersion)
    }
    await runtime.start()
    t.after(() => runtime.shutdown(0))
    await world.client.startOrchestration('newest', 'main')
    await world.client.startOrchestrationVersioned('exact', 'main', null, '1.9.0')
    assert.equal(outputOf(await world.end('newest')), '1.10.0')
    assert.equal(outputOf(await world.end('exact')), '1.9.0')
  })
})

describe('an activity', () => {
  test('that no runtime has waits, and runs once a runtime has it', async (t) => {
    const app = await liveApp(t, { main: async (ctx) => await ctx.scheduleActivity('late', 20) })
    await app.client.startOrchestration('one', 'main')
    await until(async () => (await app.rows()).activity_queue === 1, 'the activity waits')
    await app.start({ activities: { late: async (_ctx, n) => n + 1 } })
    assert.equal(outputOf(await app.end('one')), 21)
  })

  test('knows who asked, and has the same idempotency key at every try', async (t) => {
    const keys = []
    const app = await liveApp(t, {
      activities: {
        async look(ctx) {
          keys.push(ctx.idempotencyKey)
          if (ctx.attempt === 1) throw new Error('once')
          const { instanceId, executionId, orchestrationName, orchestrationVersion, activityName, attempt, delivery, sessionId } = ctx
          return { instanceId, executionId, orchestrationName, orchestrationVersion, activityName, attempt, delivery, sessionId, tag: ctx.tag() }
        },
      },
      main: async (ctx) => await ctx.scheduleActivity('look', null, { retry: { maxAttempts: 2, baseDelayMs: 1 } }),
    })
    const seen = outputOf(await app.run('one'))
    const { delivery, ...rest } = seen
    assert.deepEqual(rest, {
      instanceId: 'one', executionId: 1, orchestrationName: 'main', orchestrationVersion: '1.0.0', activityName: 'look', attempt: 2, sessionId: null, tag: null,
    })
    assert.ok(delivery >= 1)
    assert.deepEqual(keys, ['one/1/2', 'one/1/2'])
  })

  test('can talk to its own instance through its client', async (t) => {
    const app = await liveApp(t, {
      activities: { raise: async (ctx) => await ctx.getClient().raiseEvent(ctx.instanceId, 'progress', 50) },
      main: async (ctx) => await Promise.all([ctx.scheduleActivity('raise'), ctx.waitForEvent('progress')]),
    })
    assert.deepEqual(outputOf(await app.run('one')), [{ accepted: true }, 50])
  })
})

describe('a custom status', () => {
  test('is shown while the instance runs and after its end, and can be removed', async (t) => {
    const app = await liveApp(t, {
      async main(ctx) {
        ctx.setCustomStatus('one')
        await ctx.waitForEvent('a')
        ctx.resetCustomStatus()
        await ctx.waitForEvent('b')
        ctx.setCustomStatus('last')
      },
    })
    const shows = (text) => until(async () => (await app.client.getStatus('one')).customStatus === text, `status ${text}`)
    await app.client.startOrchestration('one', 'main')
    await shows('one')
    const { customStatusVersion: first } = await app.client.getStatus('one')
    await app.client.raiseEvent('one', 'a')
    await shows(undefined)
    await app.client.raiseEvent('one', 'b')
    const end = await app.end('one')
    assert.equal(end.customStatus, 'last')
    assert.ok(end.customStatusVersion > first)
  })
})

describe('runtimes', () => {
  test('of one process share the work and keep their handlers apart', async (t) => {
    const world = await liveWorld(t)
    const main = (name) => async (ctx) => [name, await ctx.scheduleActivity('where')]
    const ran = { a: 0, b: 0 }
    const where = (name) => async () => void (ran[name] += 1)
    await world.start({ orchestrations: { 'only-a': main('a') }, activities: { where: where('a') } })
    await world.start({ orchestrations: { 'only-b': main('b') }, activities: { where: where('b') } })
    const ids = Array.from({ length: 20 }, (_, n) => `${n % 2 ? 'a' : 'b'}-${n}`)
    for (const id of ids) await world.client.startOrchestration(id, `only-${id[0]}`)
    for (const id of ids) assert.equal(outputOf(await world.end(id))[0], id[0])
    assert.equal(ran.a + ran.b, 20)
    assert.equal((await world.sql('select 1 from node')).length, 2)
  })

  test('in a worker thread run as in the main one, and the thread ends by itself', async (t) => {
    const world = await liveWorld(t)
    const code = `
      const { parentPort, workerData } = require('node:worker_threads')
      import(workerData.entry).then(async ({ PostgresProvider, Runtime }) => {
        const provider = await PostgresProvider.connectWithSchema(workerData.url, workerData.schema)
        const runtime = new Runtime(provider)
        runtime.registerActivity('add', async (_ctx, n) => n + 1)
        runtime.registerOrchestration('main', async (ctx, n) => await ctx.scheduleActivity('add', n))
        await runtime.start()
        parentPort.once('message', async () => {
          await runtime.shutdown()
          await provider.close()
        })
        parentPort.postMessage('ready')
      })`
    const workerData = { url: world.url, schema: world.schema, entry: new URL('../../index.mjs', import.meta.url).href }
    const worker = new Worker(code, { eval: true, workerData })
    const exited = once(worker, 'exit')
    await once(worker, 'message')
    assert.equal(outputOf(await world.run('one', 41)), 42)
    worker.postMessage('stop')
    assert.deepEqual(await exited, [0])
  })
})
