// What users do that no example shows: each has one meaning, live and in replay, and never disturbs a neighbour.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { describe, test } from 'node:test'

import { Client, PostgresProvider, defineActivity, defineOrchestration } from '../../index.mjs'
import { gate, liveApp, liveWorld, outputOf, until } from '../support/live.mjs'
import { databaseUrl, freshSchema } from '../support/world.mjs'

const activities = {
  echo: async (_ctx, value) => value,
  fail: async (_ctx, text) => {
    throw new Error(text)
  },
}
const cold = { stickyCacheSize: 0 }

describe('an orchestration', { concurrency: 4 }, () => {
  test('may be a plain function: its value is the output, its error the failure', async (t) => {
    const app = await liveApp(t, {
      orchestrations: {
        value: () => 7,
        task: (ctx) => ctx.scheduleTimer(1),
        error: () => {
          throw new Error('at once')
        },
      },
    })
    for (const id of ['value', 'task', 'error']) await app.client.startOrchestration(id, id)
    assert.equal(outputOf(await app.end('value')), 7)
    assert.equal(outputOf(await app.end('task')), null)
    assert.match((await app.end('error')).error, /at once/)
  })

  test('may await a task twice, late, or after others: it is one step', async (t) => {
    for (const options of [{}, cold]) {
      const app = await liveApp(t, {
        activities,
        options,
        async main(ctx) {
          const task = ctx.scheduleActivity('echo', 1)
          const early = task.then((n) => n + 1)
          const other = await ctx.scheduleActivity('echo', 10)
          return [await task, await task, await early, other]
        },
      })
      assert.deepEqual(outputOf(await app.run('one')), [1, 1, 2, 10])
      assert.equal((await app.kinds('one')).filter((kind) => kind === 'ActivityScheduled').length, 2)
    }
  })

  test('that leaves a failing step unawaited goes on, and so does the process, with a warning', async (t) => {
    // In a process of its own: the test runner takes every unhandled rejection for a failed test.
    const world = await liveWorld(t)
    const program = `
      import { PostgresProvider, Runtime } from ${JSON.stringify(new URL('../../index.mjs', import.meta.url).href)}
      const provider = await PostgresProvider.connectWithSchema(process.env.URL, process.env.SCHEMA)
      const runtime = new Runtime(provider, { stickyCacheSize: 0 })
      runtime.registerActivity('fail', async () => { throw new Error('nobody looks') })
      runtime.registerOrchestration('main', async (ctx) => {
        ctx.scheduleActivity('fail').then((value) => value)
        await ctx.waitForEvent('go')
        setImmediate(() => runtime.shutdown())
        return 'on'
      })
      await runtime.start()`
    const env = { ...process.env, URL: world.url, SCHEMA: world.schema }
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], { env, stdio: ['ignore', 'ignore', 'pipe'] })
    t.after(() => child.kill())
    let errors = ''
    child.stderr.on('data', (text) => (errors += text))
    const closed = once(child, 'close')
    await world.client.startOrchestration('one', 'main')
    await until(async () => (await world.kinds('one')).includes('ActivityFailed'), 'the step has failed')
    await world.client.raiseEvent('one', 'go')
    assert.equal(outputOf(await world.end('one')), 'on')
    assert.deepEqual(await closed, [0, null])
    assert.match(errors, /HOLDFAST_UNHANDLED_REJECTION.*nobody looks/)
  })

  test('whose context is used after its end changes nothing', async (t) => {
    let leaked
    const app = await liveApp(t, {
      activities,
      main: async (ctx) => {
        leaked = ctx
        return 'over'
      },
    })
    assert.equal(outputOf(await app.run('one')), 'over')
    leaked.setCustomStatus('late')
    leaked.scheduleActivity('echo', 1).then(assert.fail, () => {})
    await app.client.startOrchestration('two', 'main')
    assert.equal(outputOf(await app.end('two')), 'over')
    assert.deepEqual(await app.kinds('one'), ['OrchestrationStarted', 'OrchestrationCompleted'])
    assert.equal((await app.client.getStatus('one')).customStatus, undefined)
  })

  test('may continue as new many times', async (t) => {
    const app = await liveApp(t, {
      activities,
      async main(ctx, n) {
        const next = await ctx.scheduleActivity('echo', n + 1)
        return next < 60 ? await ctx.continueAsNew(next) : next
      },
    })
    assert.equal(outputOf(await app.run('one', 0)), 60)
    assert.equal((await app.client.getInstanceInfo('one')).currentExecutionId, 60)
  })

  test('defined with types runs like one named by text', async (t) => {
    const double = defineActivity('double', async (_ctx, n) => n * 2)
    const main = defineOrchestration('main', async (ctx, n) => await ctx.scheduleActivity(double, n), { version: '2.1.0' })
    const world = await liveWorld(t)
    const { Runtime } = await import('../../index.mjs')
    const runtime = new Runtime(world.provider)
    runtime.registerActivity(double)
    runtime.registerOrchestration(main)
    await runtime.start()
    t.after(() => runtime.shutdown(0))
    const handle = await world.client.start(main, 21)
    assert.equal(await handle.result({ timeoutMs: 20_000 }), 42)
    assert.equal((await world.client.getInstanceInfo(handle.id)).orchestrationVersion, '2.1.0')
  })
})

describe('a lost race', { concurrency: 4 }, () => {
  test('cancels the child, with all that it runs', async (t) => {
    let aborted = false
    const app = await liveApp(t, {
      activities: {
        slow: (ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason, (aborted = true)))),
      },
      orchestrations: { child: async (ctx) => await ctx.scheduleActivity('slow') },
      async main(ctx) {
        const race = await ctx.race(ctx.scheduleSubOrchestrationWithId('child', 'kid'), ctx.waitForEvent('go'))
        return race.index
      },
    })
    await app.client.startOrchestration('one', 'main')
    await until(async () => (await app.sql('select 1 from activity_queue where owner is not null')).length === 1, 'the child works')
    await app.client.raiseEvent('one', 'go')
    assert.equal(outputOf(await app.end('one')), 1)
    assert.match((await app.end('kid')).error, /^canceled: /)
    await until(() => aborted, 'the activity was told to stop')
  })

  test('of an activity that ignores its signal records nothing more', async (t) => {
    const running = gate()
    const finish = gate()
    const app = await liveApp(t, {
      activities: {
        deaf: async () => {
          running.open()
          await finish.promise
          return 'too late'
        },
      },
      async main(ctx) {
        await ctx.race(ctx.scheduleActivity('deaf'), ctx.waitForEvent('go'))
        return await ctx.waitForEvent('end')
      },
    })
    await app.client.startOrchestration('one', 'main')
    await running.promise
    await app.client.raiseEvent('one', 'go')
    await until(async () => (await app.kinds('one')).includes('ActivityCancelRequested'), 'the race is over')
    finish.open()
    await app.client.raiseEvent('one', 'end', 'clean')
    assert.equal(outputOf(await app.end('one')), 'clean')
    assert.ok(!(await app.kinds('one')).includes('ActivityCompleted'))
  })

  test('inside another race or an all frees what it holds', async (t) => {
    const app = await liveApp(t, {
      activities,
      options: cold,
      async main(ctx) {
        const inner = () => ctx.race(ctx.waitForEvent('never'), ctx.scheduleTimer(3_600_000))
        const outer = await ctx.race(ctx.all([inner(), inner()]), inner(), ctx.scheduleActivity('echo', 'first'))
        await ctx.scheduleTimer(1)
        return [outer, await ctx.waitForEvent('go')]
      },
    })
    await app.client.startOrchestration('one', 'main')
    await until(async () => (await app.kinds('one')).includes('TimerFired'), 'the race is over')
    assert.deepEqual(await app.sql('select * from inbox'), [])
    await app.client.raiseEvent('one', 'go', 1)
    assert.deepEqual(outputOf(await app.end('one')), [{ index: 2, value: 'first' }, 1])
  })
})

describe('an id', { concurrency: 4 }, () => {
  test('of a child can be addressed, however long that of its parent is', async (t) => {
    const app = await liveApp(t, {
      orchestrations: { child: async (ctx) => await ctx.waitForEvent('go') },
      main: async (ctx) => await ctx.scheduleSubOrchestration('child'),
    })
    const id = 'x'.repeat(512)
    await app.client.startOrchestration(id, 'main')
    await until(async () => (await app.kinds(id)).includes('SubOrchestrationScheduled'), 'the child is there')
    const [{ instance }] = await app.data(id, 'SubOrchestrationScheduled')
    await app.client.raiseEvent(instance, 'go', 'addressed')
    assert.equal(outputOf(await app.end(instance)), 'addressed')
    assert.equal(outputOf(await app.end(id)), 'addressed')
  })

  test('that grows with every level of children ends with a clear error, and the parents see it', async (t) => {
    const app = await liveApp(t, { main: async (ctx) => await ctx.scheduleSubOrchestration('main') })
    const { status, error } = await app.run('y'.repeat(500))
    assert.equal(status, 'Failed')
    assert.match(error, /the id of a child of "y{40}"… has more bytes than the limit of 1024: give the child an id/)
  })

  test('that nobody has is NotFound, and waiting for it runs into its time limit', async (t) => {
    const { client } = await liveWorld(t)
    assert.deepEqual(await client.getStatus('none'), { status: 'NotFound', customStatusVersion: 0 })
    await assert.rejects(client.getInstanceInfo('none'), { code: 'NOT_FOUND' })
    assert.deepEqual(await client.listExecutions('none'), [])
    assert.deepEqual(await client.readExecutionHistory('none', 1), [])
    await assert.rejects(client.waitForOrchestration('none', 50), { code: 'TIMEOUT' })
  })
})

describe('runtimes', { concurrency: 2 }, () => {
  test('may run only turns or only activities', async (t) => {
    const world = await liveWorld(t)
    const main = async (ctx) => await ctx.scheduleActivity('echo', 'shared')
    await world.start({ activities, orchestrations: { main }, options: { workerConcurrency: 0 } })
    await world.client.startOrchestration('one', 'main')
    await until(async () => (await world.rows()).activity_queue === 1, 'the activity waits')
    await world.start({ activities, orchestrations: { main }, options: { orchestrationConcurrency: 0 } })
    assert.equal(outputOf(await world.end('one')), 'shared')
  })

  test('of two schemas in one process do not see each other', async (t) => {
    const worlds = [await liveWorld(t), await liveWorld(t)]
    for (const [n, world] of worlds.entries()) await world.start({ orchestrations: { main: async () => n } })
    for (const world of worlds) await world.client.startOrchestration('one', 'main')
    for (const [n, world] of worlds.entries()) assert.equal(outputOf(await world.end('one')), n)
  })

  test('with one slot each way finish 100 instances', async (t) => {
    const app = await liveApp(t, {
      activities,
      options: { orchestrationConcurrency: 1, workerConcurrency: 1, stickyCacheSize: 1 },
      *main(ctx, n) {
        const a = yield ctx.scheduleActivity('echo', n)
        return yield ctx.scheduleActivity('echo', a + 1)
      },
    })
    const ids = Array.from({ length: 100 }, (_, n) => `slot-${n}`)
    await Promise.all(ids.map((id, n) => app.client.startOrchestration(id, 'main', n)))
    for (const [n, id] of ids.entries()) assert.equal(outputOf(await app.end(id)), n + 1)
  })

  test('go on while JavaScript is blocked longer than the leases', async (t) => {
    let blocks = 0
    const app = await liveApp(t, {
      activities: {
        block() {
          blocks += 1
          const end = Date.now() + 1200
          while (Date.now() < end);
          return 'free'
        },
        echo: activities.echo,
      },
      options: { orchestratorLockTimeoutMs: 200, workerLockTimeoutMs: 200 },
      main: async (ctx) => await Promise.all([ctx.scheduleActivity('block'), ctx.scheduleActivity('echo', 1), ctx.scheduleTimer(50)]),
    })
    assert.deepEqual(outputOf(await app.run('one')), ['free', 1, null])
    assert.equal(blocks, 1)
  })

  test('serve several providers of one database at once', async (t) => {
    const schema = freshSchema()
    const world = await liveWorld(t, { schema })
    await world.start({ orchestrations: { main: async (ctx) => await ctx.waitForEvent('go') } })
    const other = await PostgresProvider.connectWithSchema(databaseUrl(), schema, { maxClients: 1 })
    t.after(() => other.close())
    const client = new Client(other)
    const ids = Array.from({ length: 20 }, (_, n) => `far-${n}`)
    await Promise.all(ids.map((id) => client.startOrchestration(id, 'main')))
    await Promise.all(ids.map((id) => client.raiseEvent(id, 'go', id)))
    assert.deepEqual((await Promise.all(ids.map((id) => client.waitForOrchestration(id, 20_000)))).map((end) => end.output), ids)
  })
})
