// Table "Client", second half: numbers of the system, lists, trees, deleting and pruning.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { liveApp, liveWorld, outputOf, until } from '../support/live.mjs'

const waiting = {
  async main(ctx) {
    return await ctx.waitForEvent('go')
  },
}

describe('numbers of the system', () => {
  test('getSystemMetrics counts instances by the status of their current execution', async (t) => {
    const app = await liveApp(t, {
      ...waiting,
      orchestrations: {
        failing: async () => {
          throw new Error('no')
        },
        *again(ctx, n) {
          if (n > 0) yield ctx.continueAsNew(n - 1)
        },
      },
    })
    await app.client.startOrchestration('running', 'main')
    await app.client.startOrchestration('failed', 'failing')
    await app.client.startOrchestration('completed', 'again', 1)
    await app.end('failed')
    await app.end('completed')
    await until(async () => (await app.client.getStatus('running')).status === 'Running')
    const { totalEvents, ...metrics } = await app.client.getSystemMetrics()
    assert.deepEqual(metrics, { totalInstances: 3, totalExecutions: 4, runningInstances: 1, completedInstances: 1, failedInstances: 1 })
    assert.ok(totalEvents >= 8)
  })

  test('getOrchestrationStats is null for an unknown instance, else sizes of the current execution', async (t) => {
    const app = await liveWorld(t)
    const stopped = {
      async main(ctx, n) {
        ctx.setValue('key', 'value')
        await ctx.dequeueEvent('q')
        if (n === 0) return ctx.continueAsNew(1)
        await ctx.waitForEvent('end')
        return n
      },
    }
    assert.equal(await app.client.getOrchestrationStats('nobody'), null)
    await app.client.startOrchestration('a', 'main', 0)
    for (const n of [1, 2, 3, 4]) await app.client.enqueueEvent('a', 'q', n)
    await app.start({ orchestrations: stopped })
    await until(async () => (await app.client.listExecutions('a')).length === 2)
    await until(async () => (await app.kinds('a', 2)).includes('ExternalSubscribed'))
    const stats = await app.client.getOrchestrationStats('a')
    assert.deepEqual(Object.keys(stats).sort(), ['historyEventCount', 'historySizeBytes', 'kvTotalValueBytes', 'kvUserKeyCount', 'queuePendingCount'])
    assert.equal(stats.historyEventCount, (await app.client.readExecutionHistory('a', 2)).length)
    assert.ok(stats.historySizeBytes > 0)
    assert.equal(stats.queuePendingCount, 3)
    assert.equal(stats.kvUserKeyCount, 1)
    assert.ok(stats.kvTotalValueBytes >= 5)
  })

  test('getQueueDepths counts what is visible and not taken; timers have no queue', async (t) => {
    const world = await liveWorld(t)
    assert.deepEqual(await world.client.getQueueDepths(), { orchestratorQueue: 0, workerQueue: 0, timerQueue: 0 })
    await world.client.startOrchestration('a', 'main')
    await world.client.startOrchestration('b', 'main')
    assert.deepEqual(await world.client.getQueueDepths(), { orchestratorQueue: 2, workerQueue: 0, timerQueue: 0 })
    await world.start({ orchestrations: { main: async (ctx) => await ctx.scheduleActivity('nobody-has-it') }, options: { workerConcurrency: 0 } })
    await until(async () => (await world.client.getQueueDepths()).workerQueue === 2)
  })
})

describe('management', () => {
  const tree = {
    async main(ctx) {
      return await ctx.all([ctx.scheduleSubOrchestrationWithId('child', 'c1'), ctx.scheduleSubOrchestrationWithId('child', 'c2')])
    },
    orchestrations: { child: async (ctx) => ctx.instanceId, sleeper: async (ctx) => await ctx.waitForEvent('never') },
  }

  test('listAllInstances gives ids, newest first; listInstancesByStatus those with exactly that status', async (t) => {
    const app = await liveApp(t, tree)
    await app.run('a')
    await app.client.startOrchestration('s', 'sleeper')
    await until(async () => (await app.client.getStatus('s')).status === 'Running')
    const all = await app.client.listAllInstances()
    assert.equal(all[0], 's')
    assert.deepEqual([...all].sort(), ['a', 'c1', 'c2', 's'])
    assert.deepEqual(await app.client.listInstancesByStatus('Running'), ['s'])
    assert.deepEqual((await app.client.listInstancesByStatus('Completed')).sort(), ['a', 'c1', 'c2'])
    for (const status of ['Failed', 'ContinuedAsNew', 'Whatever']) assert.deepEqual(await app.client.listInstancesByStatus(status), [])
  })

  test('getInstanceInfo has the documented fields, and rejects when unknown', async (t) => {
    const app = await liveApp(t, tree)
    const before = Date.now() - 60_000
    await app.run('a')
    const { createdAt, updatedAt, ...info } = await app.client.getInstanceInfo('c1')
    assert.deepEqual(info, {
      instanceId: 'c1',
      orchestrationName: 'child',
      orchestrationVersion: '1.0.0',
      currentExecutionId: 1,
      status: 'Completed',
      output: 'c1',
      parentInstanceId: 'a',
    })
    assert.ok(createdAt > before && updatedAt >= createdAt)
    assert.equal('parentInstanceId' in (await app.client.getInstanceInfo('a')), false)
    await assert.rejects(app.client.getInstanceInfo('nobody'), { message: 'Instance nobody not found' })
  })

  test('listExecutions and getExecutionInfo tell each execution', async (t) => {
    const app = await liveApp(t, {
      *main(ctx, n) {
        if (n < 2) yield ctx.continueAsNew(n + 1)
        return n
      },
    })
    await app.run('a', 0)
    assert.deepEqual(await app.client.listExecutions('a'), [1, 2, 3])
    const infos = await Promise.all([1, 2, 3].map((id) => app.client.getExecutionInfo('a', id)))
    assert.deepEqual(infos.map(({ executionId, status }) => [executionId, status]), [
      [1, 'ContinuedAsNew'],
      [2, 'ContinuedAsNew'],
      [3, 'Completed'],
    ])
    assert.equal(infos[2].output, 2)
    assert.ok(infos[2].completedAt >= infos[2].startedAt)
    assert.equal(infos[2].eventCount, (await app.client.readExecutionHistory('a', 3)).length)
  })

  test('getInstanceTree gives the id and all its descendants', async (t) => {
    const app = await liveApp(t, tree)
    await app.run('a')
    const { rootId, allIds, size } = await app.client.getInstanceTree('a')
    assert.deepEqual([rootId, [...allIds].sort(), size], ['a', ['a', 'c1', 'c2'], 3])
    assert.deepEqual(await app.client.getInstanceTree('c1'), { rootId: 'c1', allIds: ['c1'], size: 1 })
  })

  test('deleteInstance deletes the tree in one go and says how much; children and running ones are refused', async (t) => {
    const app = await liveApp(t, tree)
    await app.run('a')
    await assert.rejects(app.client.deleteInstance('c1'), {
      message: 'Cannot delete sub-orchestration c1 directly. Delete the root orchestration instead.',
    })
    const deleted = await app.client.deleteInstance('a')
    assert.deepEqual(Object.keys(deleted).sort(), ['eventsDeleted', 'executionsDeleted', 'instancesDeleted', 'queueMessagesDeleted'])
    assert.deepEqual([deleted.instancesDeleted, deleted.executionsDeleted], [3, 3])
    assert.ok(deleted.eventsDeleted >= 8)
    assert.deepEqual(await app.client.listAllInstances(), [])
    await assert.rejects(app.client.deleteInstance('a'), { message: 'Instance a not found' })

    for (const [id, force] of [['s1', true], ['s2', { force: true }]]) {
      await app.client.startOrchestration(id, 'sleeper')
      await until(async () => (await app.client.getStatus(id)).status === 'Running')
      await assert.rejects(app.client.deleteInstance(id), { message: `Instance ${id} is still running. Use force=true or cancel first.` })
      assert.equal((await app.client.deleteInstance(id, force)).instancesDeleted, 1)
      assert.equal((await app.client.getStatus(id)).status, 'NotFound')
    }
  })

  test('deleteInstanceBulk takes ended roots, by id, by time and up to a limit; running ones are skipped', async (t) => {
    const app = await liveApp(t, tree)
    await app.run('a')
    await app.client.startOrchestration('s', 'sleeper')
    await until(async () => (await app.client.getStatus('s')).status === 'Running')
    assert.equal((await app.client.deleteInstanceBulk({ instanceIds: ['s', 'nobody', 'c1'] })).instancesDeleted, 0)
    assert.equal((await app.client.deleteInstanceBulk({ completedBefore: 1 })).instancesDeleted, 0)
    assert.equal((await app.client.deleteInstanceBulk({ instanceIds: ['a'], limit: 1 })).instancesDeleted, 3)
    assert.deepEqual(await app.client.listAllInstances(), ['s'])
    assert.equal((await app.client.deleteInstanceBulk()).instancesDeleted, 0)
  })

  test('pruneExecutions keeps the newest; keepLast absent, 0 and 1 mean the same', async (t) => {
    const app = await liveApp(t, {
      *main(ctx, n) {
        if (n < 4) yield ctx.continueAsNew(n + 1)
        return n
      },
    })
    for (const id of ['a', 'b', 'c', 'd']) await app.run(id, 0)
    const pruned = await app.client.pruneExecutions('a', { keepLast: 2 })
    assert.deepEqual([pruned.instancesProcessed, pruned.executionsDeleted], [1, 3])
    assert.ok(pruned.eventsDeleted >= 6)
    assert.deepEqual(await app.client.listExecutions('a'), [4, 5])
    for (const [id, options] of [['b', {}], ['c', { keepLast: 0 }], ['d', { keepLast: 1 }]]) {
      await app.client.pruneExecutions(id, options)
      assert.deepEqual(await app.client.listExecutions(id), [5])
    }
    const bulk = await app.client.pruneExecutionsBulk({ instanceIds: ['a'] }, { keepLast: 1 })
    assert.deepEqual([bulk.instancesProcessed, bulk.executionsDeleted], [1, 1])
    assert.equal(outputOf(await app.end('a')), 4)
  })
})
