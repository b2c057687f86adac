// An instance that cannot go on here is parked, not killed: it keeps what it has, and goes on after a deploy that fits.
// A second runtime on the same schema is the next deployment.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { gate, liveWorld, outputOf, until } from '../support/live.mjs'

const activities = { a: async () => 'a', b: async () => 'b', c: async () => 'c' }

async function good(ctx) {
  const first = await ctx.scheduleActivity('a', 1)
  return [first, await ctx.waitForEvent('go'), await ctx.scheduleActivity('b', 2)]
}

async function changed(ctx) {
  await ctx.scheduleActivity('c', 1)
  return await ctx.waitForEvent('go')
}

const orchestrations = (main) => ({ main, parent: async (ctx) => await ctx.scheduleSubOrchestrationWithId('main', 'child') })

/** Runs `good` as `id` up to its wait, deploys `main`, and wakes the instance. */
async function deploy(t, main, { id = 'one', start = ['one', 'main'] } = {}) {
  const world = await liveWorld(t)
  const first = await world.start({ activities, orchestrations: orchestrations(good) })
  await world.client.startOrchestration(...start)
  await until(async () => (await world.kinds(id)).includes('ExternalSubscribed'), 'it waits')
  await first.shutdown(1000)
  const second = await world.start({ activities, orchestrations: orchestrations(main) })
  assert.deepEqual(await world.client.raiseEvent(id, 'go', 'went'), { accepted: true })
  return { ...world, second }
}

const isParked = async ({ client }, id) => (await client.listInstances({ parked: true })).instances.some((found) => found.instanceId === id)

describe('a parked instance', { concurrency: 4 }, () => {
  test('shows failed with the reason, has no end, keeps its message, and completes exactly after the fix', async (t) => {
    const world = await deploy(t, changed)
    const { client } = world
    const end = await world.end('one')
    assert.equal(end.status, 'Failed')
    assert.match(end.error, /^nondeterministic: at event 2 history has .* but the code gave /)
    assert.deepEqual(await client.getStatus('one'), { status: 'Failed', error: end.error, customStatusVersion: 0 })
    const { parked, status } = await client.getInstanceInfo('one')
    assert.equal(status, 'Failed')
    assert.equal(parked.code, 'NONDETERMINISM')
    assert.equal(parked.reason, end.error)
    assert.ok(Math.abs(Date.now() - parked.since) < 60_000)
    assert.deepEqual((await client.listInstances({ parked: true })).instances, [
      { ...(await client.listInstances({ status: 'Failed' })).instances[0], errorCode: 'NONDETERMINISM', parked: { code: 'NONDETERMINISM', since: parked.since } },
    ])
    assert.deepEqual((await client.listInstances({ parked: false })).instances, [])
    assert.deepEqual(await client.listInstancesByStatus('Running'), [])
    const kinds = await world.kinds('one')
    assert.ok(!kinds.some((kind) => kind.endsWith('Failed') || kind === 'ExternalEvent'), kinds.join())
    const [{ n }] = await world.sql("select count(*)::int as n from inbox where instance = 'one'")
    assert.equal(n, 1)
    assert.deepEqual(await client.audit(), [], 'a parked instance is no orphan')
    // More of the same code does not help, and messages alone do not wake it.
    assert.deepEqual(await client.resume('one'), { resumed: true })
    await until(() => isParked(world, 'one'), 'parked again')
    await client.raiseEvent('one', 'more')
    assert.ok(await isParked(world, 'one'))
    await world.second.shutdown(1000)
    await world.start({ activities, orchestrations: orchestrations(good) })
    assert.deepEqual(await client.resume('one'), { resumed: true })
    assert.deepEqual(outputOf(await world.end('one')), ['a', 'went', 'b'])
    assert.deepEqual(await client.resume('one'), { resumed: false })
    assert.equal((await client.getInstanceInfo('one')).parked, undefined)
    assert.equal((await world.kinds('one')).filter((kind) => kind === 'ActivityScheduled').length, 2)
    assert.deepEqual(await world.client.audit(), [])
  })

  test('does not fail its parent, which completes after the fix on another node', async (t) => {
    const world = await deploy(t, changed, { id: 'child', start: ['boss', 'parent'] })
    await until(() => isParked(world, 'child'), 'the child is parked')
    assert.equal((await world.client.getStatus('boss')).status, 'Running')
    await world.second.shutdown(1000)
    await world.start({ activities, orchestrations: orchestrations(good) })
    assert.deepEqual(await world.client.resumeBulk({ name: 'main', code: 'NONDETERMINISM' }), { resumed: 1 })
    assert.deepEqual(outputOf(await world.end('boss')), ['a', 'went', 'b'])
  })

  test('is cancelled like any other, however many messages wait before the request', async (t) => {
    const world = await deploy(t, changed)
    await until(() => isParked(world, 'one'), 'parked')
    await world.sql("insert into inbox (instance, kind, name, data) select 'one', 'EventRaised', 'noise', 'null' from generate_series(1, 1500)")
    assert.deepEqual(await world.client.cancelInstance('one', 'enough'), { accepted: true })
    await until(async () => (await world.client.getInstanceInfo('one')).parked === undefined, 'it is not parked')
    const { status, error } = await world.end('one')
    assert.deepEqual([status, error], ['Failed', 'canceled: enough'])
    assert.deepEqual((await world.client.listInstances({ status: 'Cancelled' })).instances.map((found) => found.instanceId), ['one'])
  })

  test('that is cancelled while code that fits is there runs its clean-up and is not shown as parked meanwhile', async (t) => {
    const world = await deploy(t, changed)
    await until(() => isParked(world, 'one'), 'parked')
    await world.second.shutdown(1000)
    const cleanup = gate()
    const tidy = async (ctx) => {
      try {
        return await good(ctx)
      } finally {
        await ctx.scheduleActivity('tidy')
      }
    }
    await world.start({ activities: { ...activities, tidy: () => cleanup.promise }, orchestrations: orchestrations(tidy) })
    await world.client.cancelInstance('one', 'enough')
    await until(async () => (await world.client.getStatus('one')).status === 'Running', 'it cleans up')
    assert.equal((await world.client.getInstanceInfo('one')).parked, undefined)
    cleanup.open('tidied')
    assert.equal((await world.end('one')).error, 'canceled: enough')
  })

  test('refuses to be deleted without force', async (t) => {
    const world = await deploy(t, changed)
    await world.end('one')
    await assert.rejects(world.client.deleteInstance('one'), { message: 'Instance one is still running. Use force=true or cancel first.' })
    assert.equal((await world.client.deleteInstance('one', true)).instancesDeleted, 1)
  })

  test('that awaited something foreign goes on with code that does not', async (t) => {
    const world = await deploy(t, async (ctx) => {
      await ctx.scheduleActivity('a', 1)
      await ctx.waitForEvent('go')
      await new Promise((resolve) => setTimeout(resolve, 60_000).unref())
    })
    const { status, error } = await world.end('one')
    assert.equal(status, 'Failed')
    assert.match(error, /main/)
    assert.equal((await world.client.getInstanceInfo('one')).parked.code, 'FOREIGN_WAIT')
    await world.second.shutdown(1000)
    await world.start({ activities, orchestrations: orchestrations(good) })
    await world.client.resume('one')
    assert.deepEqual(outputOf(await world.end('one')), ['a', 'went', 'b'])
  })

  test('whose message cannot be read is alone with it, and reads on once it is mended', async (t) => {
    const world = await liveWorld(t)
    const runtime = await world.start({ activities, orchestrations: orchestrations(good) })
    for (const id of ['bad', 'fine']) {
      await world.client.startOrchestration(id, 'main')
      await until(async () => (await world.kinds(id)).includes('ExternalSubscribed'), 'it waits')
    }
    await runtime.shutdown(1000)
    await world.sql("insert into inbox (instance, kind) values ('bad', 'FromTheFuture')")
    for (const id of ['bad', 'fine']) await world.client.raiseEvent(id, 'go', 'went')
    await world.start({ activities, orchestrations: orchestrations(good) })
    assert.deepEqual(outputOf(await world.end('fine')), ['a', 'went', 'b'])
    const { status, error } = await world.end('bad')
    assert.equal(status, 'Failed')
    assert.match(error, /message \d+ of kind "FromTheFuture" cannot be read/)
    await world.sql("delete from inbox where kind = 'FromTheFuture'")
    await world.client.resume('bad')
    assert.deepEqual(outputOf(await world.end('bad')), ['a', 'went', 'b'])
  })

  test('whose history cannot be read is cancelled with all it has under way', async (t) => {
    const world = await liveWorld(t)
    const handlers = {
      options: { stickyCacheSize: 0 },
      activities: { never: (ctx) => new Promise((resolve) => ctx.signal.addEventListener('abort', () => resolve('stopped'))) },
      orchestrations: {
        grand: async (ctx) => await ctx.scheduleSubOrchestrationWithId('parent', 'bad'),
        parent: async (ctx) => await ctx.all([ctx.scheduleActivity('never'), ctx.scheduleSubOrchestrationWithId('child', 'sub'), ctx.waitForEvent('go')]),
        child: async (ctx) => await ctx.waitForEvent('never'),
      },
    }
    await world.start(handlers)
    await world.client.startOrchestration('boss', 'grand')
    await until(async () => (await world.sql("select 1 from activity_queue where owner is not null")).length === 1, 'all is under way')
    await until(async () => (await world.client.getStatus('sub')).status === 'Running', 'the child runs')
    // The same step answered twice: no history of ours.
    await world.sql(`insert into history_turn select instance, execution, event_id + 1, 1, at_ms, kind || coalesce('@' || source, ''), data from history where instance = 'bad' order by event_id desc limit 1`)
    await world.client.raiseEvent('bad', 'go')
    await until(() => isParked(world, 'bad'), 'parked')
    assert.equal((await world.client.getInstanceInfo('bad')).parked.code, 'CORRUPT')
    assert.equal((await world.client.getStatus('boss')).status, 'Running')
    await world.client.cancelInstance('bad', 'hopeless')
    const boss = await world.end('boss')
    assert.equal(boss.status, 'Failed')
    assert.match(boss.error, /canceled: hopeless/)
    assert.match((await world.end('sub')).error, /^canceled: /)
    assert.deepEqual(await world.sql('select 1 from activity_queue'), [])
    assert.deepEqual(await world.sql('select 1 from turn_queue'), [])
  })
})

describe('versions', { concurrency: 4 }, () => {
  test('a start of a version that nobody has waits until somebody has it', async (t) => {
    const world = await liveWorld(t)
    const first = await world.start({ orchestrations: { main: async () => 'old' } })
    await world.client.startOrchestrationVersioned('one', 'main', null, '2.0.0')
    await world.client.startOrchestration('two', 'main')
    assert.equal(outputOf(await world.end('two')), 'old')
    assert.deepEqual(await world.client.getStatus('one'), { status: 'NotFound', customStatusVersion: 0, isPending: true })
    assert.deepEqual((await world.client.listInstances({ parked: true })).instances, [])
    await first.shutdown(1000)
    const { Runtime } = await import('../../index.mjs')
    const next = new Runtime(world.provider)
    next.registerOrchestrationVersioned('main', '2.0.0', async () => 'new')
    await next.start()
    t.after(() => next.shutdown(0))
    assert.equal(outputOf(await world.end('one')), 'new')
  })

  test('an execution keeps the version that it began with, over restarts and beside newer ones', async (t) => {
    const world = await liveWorld(t)
    const { Runtime } = await import('../../index.mjs')
    const start = async (versions) => {
      const runtime = new Runtime(world.provider, { stickyCacheSize: 0 })
      for (const version of versions) {
        runtime.registerOrchestrationVersioned('main', version, async (ctx) => {
          const rounds = []
          for (let i = 0; i < 5; i++) rounds.push(`${version} ${await ctx.waitForEvent('round')}`)
          return rounds
        })
      }
      await runtime.start()
      t.after(() => runtime.shutdown(0))
      return runtime
    }
    let runtime = await start(['1.0.0'])
    await world.client.startOrchestration('one', 'main')
    await until(async () => (await world.client.getStatus('one')).status === 'Running', 'it runs')
    for (let i = 0; i < 5; i++) {
      await runtime.shutdown(1000)
      runtime = await start(['1.0.0', '2.0.0'])
      await world.client.raiseEvent('one', 'round', i)
      await until(async () => (await world.kinds('one')).filter((kind) => kind === 'ExternalEvent').length === i + 1, 'the round')
    }
    assert.deepEqual(outputOf(await world.end('one')), [0, 1, 2, 3, 4].map((i) => `1.0.0 ${i}`))
  })
})
