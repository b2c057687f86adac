// What an operator asks for: lists, trees, sizes, deleting and pruning, on the real engine.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { liveApp, until } from '../support/live.mjs'

const activities = { echo: async (_ctx, value) => value }

describe('management', { concurrency: 4 }, () => {
  test('lists instances by status, name and prefix, newest first, page by page', async (t) => {
    const app = await liveApp(t, {
      activities,
      orchestrations: { waits: async (ctx) => await ctx.waitForEvent('go') },
      main: async (_ctx, n) => n,
    })
    for (let n = 0; n < 5; n++) {
      await app.client.startOrchestration(`done-${n}`, 'main', n)
      await app.end(`done-${n}`)
    }
    await app.client.startOrchestration('open', 'waits')
    await until(async () => (await app.client.getStatus('open')).status === 'Running', 'the first turn')
    assert.deepEqual(await app.client.listAllInstances(), ['open', 'done-4', 'done-3', 'done-2', 'done-1', 'done-0'])
    assert.deepEqual(await app.client.listInstancesByStatus('Running'), ['open'])
    const first = await app.client.listInstances({ name: 'main', limit: 3 })
    assert.deepEqual(first.instances.map((instance) => instance.instanceId), ['done-4', 'done-3', 'done-2'])
    const second = await app.client.listInstances({ name: 'main', limit: 3, cursor: first.cursor })
    assert.deepEqual(second.instances.map((instance) => instance.instanceId), ['done-1', 'done-0'])
    assert.equal(second.cursor, undefined)
    const some = await app.client.listInstances({ idPrefix: 'done-', status: 'Completed' })
    assert.equal(some.instances.length, 5)
    await assert.rejects(app.client.listInstances({ nmae: 'main' }), /nmae/)
    const metrics = await app.client.getSystemMetrics()
    assert.deepEqual([metrics.totalInstances, metrics.runningInstances, metrics.completedInstances], [6, 1, 5])
    assert.deepEqual(await app.client.getQueueDepths(), { orchestratorQueue: 0, workerQueue: 0, timerQueue: 0 })
  })

  test('deletes a whole tree, refuses children and what runs, and a late commit makes nothing anew', async (t) => {
    const app = await liveApp(t, {
      activities,
      orchestrations: { child: async (ctx) => await ctx.waitForEvent('go') },
      main: async (ctx) => await ctx.scheduleSubOrchestration('child'),
    })
    await app.client.startOrchestration('root', 'main')
    const tree = await until(async () => {
      const found = await app.client.getInstanceTree('root')
      return found.size === 2 && found
    }, 'the child is there')
    const child = tree.allIds[1]
    await until(async () => (await app.client.getStatus(child)).status === 'Running', 'the child runs')
    await assert.rejects(app.client.deleteInstance('root'), {
      message: 'Instance root is still running. Use force=true or cancel first.',
    })
    await assert.rejects(app.client.deleteInstance(child, true), {
      message: `Cannot delete sub-orchestration ${child} directly. Delete the root orchestration instead.`,
    })
    await assert.rejects(app.client.deleteInstance('nobody'), { message: 'Instance nobody not found' })
    const gone = await app.client.deleteInstance('root', { force: true })
    assert.equal(gone.instancesDeleted, 2)
    assert.deepEqual(await app.client.listAllInstances(), [])
    assert.equal((await app.client.getStatus('root')).status, 'NotFound')
    for (const table of ['history', 'inbox', 'turn_queue', 'activity_queue', 'execution']) {
      assert.deepEqual(await app.sql(`select * from ${table} where instance like 'root%'`), [], table)
    }
    await app.client.startOrchestration('root', 'main')
    await until(async () => (await app.client.getInstanceTree('root')).size === 2, 'the same id runs anew')
  })

  test('prunes closed executions and keeps the current one', async (t) => {
    const app = await liveApp(t, {
      activities,
      main: async (ctx, n) => (n < 4 ? await ctx.continueAsNew(n + 1) : n),
    })
    await app.run('loop', 0)
    assert.deepEqual(await app.client.listExecutions('loop'), [1, 2, 3, 4, 5])
    assert.equal((await app.client.getExecutionInfo('loop', 2)).status, 'ContinuedAsNew')
    const pruned = await app.client.pruneExecutions('loop', { keepLast: 2 })
    assert.equal(pruned.executionsDeleted, 3)
    assert.deepEqual(await app.client.listExecutions('loop'), [4, 5])
    const stats = await app.client.getOrchestrationStats('loop')
    assert.ok(stats.historyEventCount > 0)
    assert.equal(await app.client.getOrchestrationStats('nobody'), null)
  })

  test('tells a change of the custom status, and runs into its time limit without one', async (t) => {
    const app = await liveApp(t, {
      activities,
      async main(ctx) {
        ctx.setCustomStatus('one')
        await ctx.waitForEvent('go')
        ctx.setCustomStatus('two')
        return 'over'
      },
    })
    await app.client.startOrchestration('s', 'main')
    const one = await app.client.waitForStatusChange('s', 0, 20, 20_000)
    assert.equal(one.customStatus, 'one')
    await assert.rejects(app.client.waitForStatusChange('s', one.customStatusVersion, 20, 60), { message: /^Operation timed out: the custom status of instance 's' did not pass version/ })
    await app.client.raiseEvent('s', 'go')
    const two = await app.client.waitForStatusChange('s', one.customStatusVersion, 20, 20_000)
    assert.equal(two.customStatus, 'two')
  })
})
