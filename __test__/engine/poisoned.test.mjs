// A poisoned instance is ended and told of, can be listed, and is retried by a recorded act: it goes on where it stood.
// Deliveries are used up by hand: what matters here is what comes after.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { gate, liveWorld, outputOf, until } from '../support/live.mjs'

/** Uses up the deliveries of an instance that waits and wakes it, at once, so that no turn comes in between. */
async function poison(world, id) {
  await until(async () => {
    const woken = await world.sql(
      `with spent as (
         update turn_queue set deliveries = 10, due_at = clock_timestamp() where instance = $1 and owner is null returning instance
       )
       insert into inbox (instance, kind, name, data) select instance, 'EventRaised', 'go', '"went"' from spent returning id`,
      [id],
    )
    return woken.length === 1
  }, 'nobody has its turn')
  return await world.end(id)
}

describe('a poisoned instance', { concurrency: 4 }, () => {
  test('is listed, and retried it completes with every step done once and every message there', async (t) => {
    const world = await liveWorld(t)
    const ran = []
    const slow = gate()
    const keys = []
    const activities = {
      once: async (_ctx, n) => (ran.push(n), n),
      slow: async (ctx) => (keys.push(ctx.idempotencyKey), await slow.promise),
    }
    const orchestrations = {
      main: async (ctx) => {
        const first = await ctx.scheduleActivity('once', 1)
        const rest = await ctx.all([
          ctx.waitForEvent('go'),
          ctx.scheduleTimer(200),
          ctx.scheduleActivity('slow'),
          ctx.scheduleSubOrchestrationWithId('child', 'ended'),
          ctx.scheduleSubOrchestrationWithId('child', 'running'),
        ])
        return [first, ...rest.map((each) => each.ok), await ctx.scheduleActivity('once', 2)]
      },
      child: async (ctx) => await ctx.waitForEvent('finish'),
    }
    await world.start({ activities, orchestrations })
    await world.client.startOrchestration('one', 'main')
    await until(async () => keys.length === 1 && (await world.client.getStatus('running')).status === 'Running', 'all is under way')
    const { status, error } = await poison(world, 'one')
    assert.deepEqual([status, error], ['Failed', 'poison: orchestration one exceeded 11 attempts (max 10)'])
    const { instances } = await world.client.listInstances({ status: 'Failed', code: 'POISONED' })
    assert.deepEqual(instances.map((each) => [each.instanceId, each.errorCode, each.parked]), [['one', 'POISONED', undefined]])
    assert.deepEqual(await world.sql('select 1 from activity_queue'), [])
    assert.deepEqual(await world.client.raiseEvent('one', 'late'), { accepted: false })
    await world.client.raiseEvent('ended', 'finish', 'early')
    await world.end('ended')
    const before = await world.kinds('one')
    assert.equal(before.at(-1), 'OrchestrationFailed')

    assert.deepEqual(await world.client.audit(), [], 'what waits for a retry is no orphan')
    const retries = await Promise.all(Array.from({ length: 4 }, () => world.client.retryInstance('one')))
    assert.equal(retries.filter(({ retried }) => retried).length, 1)
    slow.open('slept')
    await world.client.raiseEvent('running', 'finish', 'late')
    assert.deepEqual(outputOf(await world.end('one')), [1, 'went', null, 'slept', 'early', 'late', 2])
    assert.deepEqual(ran, [1, 2])
    assert.equal(new Set(keys).size, 1)
    const after = await world.kinds('one')
    assert.deepEqual(after.slice(0, before.length + 1), [...before, 'OrchestrationRetried'])
    assert.equal(after.at(-1), 'OrchestrationCompleted')
    assert.deepEqual(await world.client.retryInstance('one'), { retried: false })
    assert.deepEqual(await world.client.audit(), [])
    await assert.rejects(world.client.retryInstance('nobody'), { code: 'NOT_FOUND' })
  })

  test('that never had a turn is retried from its start, also by another node, and its parent was told', async (t) => {
    const world = await liveWorld(t)
    const parent = async (ctx) => await ctx.scheduleSubOrchestrationWithId('main', 'child').then(() => 'fine', (error) => error.code)
    const first = await world.start({ orchestrations: { parent } })
    await world.client.startOrchestration('boss', 'parent')
    await until(async () => (await world.sql("select 1 from turn_queue where instance = 'child'")).length === 1, 'the child is there')
    await world.sql("update turn_queue set deliveries = 10 where instance = 'child'")
    const main = async (ctx) => [await ctx.scheduleActivity('a'), ctx.executionId]
    const runtime = await world.start({ activities: { a: async () => 'a' }, orchestrations: { parent, main } })
    assert.equal(outputOf(await world.end('boss')), 'POISONED')
    assert.match((await world.end('child')).error, /^poison: orchestration child exceeded 11 attempts/)
    await runtime.shutdown(1000)
    await first.shutdown(1000)
    assert.deepEqual(await world.client.retryInstance('child'), { retried: true })
    await world.start({ activities: { a: async () => 'a' }, orchestrations: { parent, main } })
    assert.deepEqual(outputOf(await world.end('child')), ['a', 1])
    assert.deepEqual(await world.kinds('child'), ['OrchestrationStarted', 'OrchestrationFailed', 'OrchestrationRetried', 'ActivityScheduled', 'ActivityCompleted', 'OrchestrationCompleted'])
  })

  test('is poisoned again when it does not help, and retried again', async (t) => {
    const world = await liveWorld(t)
    const main = async (ctx) => [await ctx.waitForEvent('go'), await ctx.waitForEvent('go')]
    await world.start({ orchestrations: { main } })
    await world.client.startOrchestration('one', 'main')
    for (let round = 1; round <= 2; round++) {
      await until(async () => (await world.kinds('one')).filter((kind) => kind === 'ExternalSubscribed').length === round, 'it waits')
      assert.match((await poison(world, 'one')).error, /^poison: /)
      assert.deepEqual(await world.client.retryInstance('one'), { retried: true })
    }
    assert.deepEqual(outputOf(await world.end('one')), ['went', 'went'])
    assert.equal((await world.kinds('one')).filter((kind) => kind === 'OrchestrationRetried').length, 2)
  })
})
