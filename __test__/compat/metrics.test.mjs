// Row "metricsSnapshot" of table "Runtime".
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Runtime } from '../../index.mjs'
import { liveWorld } from '../support/live.mjs'

const NAMES = [
  'orchStarts', 'orchCompletions', 'orchFailures', 'orchApplicationErrors', 'orchInfrastructureErrors', 'orchConfigurationErrors',
  'orchPoison', 'activitySuccess', 'activityAppErrors', 'activityInfraErrors', 'activityConfigErrors', 'activityPoison',
  'orchDispatcherItemsFetched', 'workerDispatcherItemsFetched', 'orchContinueAsNew', 'suborchestrationCalls', 'providerErrors',
]

test('metricsSnapshot is null before the start and after a shutdown, and has every name between', async (t) => {
  const world = await liveWorld(t)
  const runtime = new Runtime(world.provider)
  assert.equal(runtime.metricsSnapshot(), null)
  await runtime.start()
  const snapshot = runtime.metricsSnapshot()
  const { orchQueueDepth, workerQueueDepth, ...counters } = snapshot
  assert.deepEqual(Object.keys(counters).sort(), [...NAMES].sort())
  assert.ok(Object.values(counters).every((value) => value === 0))
  // Gauges: null until the queues were looked at.
  assert.ok([orchQueueDepth, workerQueueDepth].every((depth) => depth === null || depth === 0))
  await runtime.shutdown()
  assert.equal(runtime.metricsSnapshot(), null)
})

test('metricsSnapshot counts starts, ends, activities, children and executions of this runtime only', async (t) => {
  const world = await liveWorld(t)
  const idle = await world.start({ options: { orchestrationConcurrency: 0, workerConcurrency: 0 } })
  const runtime = await world.start({
    activities: {
      fine: async () => 1,
      broken: async () => {
        throw new Error('no')
      },
    },
    orchestrations: {
      *main(ctx, n) {
        yield ctx.scheduleActivity('fine')
        yield ctx.scheduleSubOrchestration('child')
        if (n > 0) yield ctx.continueAsNew(n - 1)
        return 'done'
      },
      child: async () => 'child',
      async failing(ctx) {
        await ctx.scheduleActivityWithRetry('broken', null, { maxAttempts: 2 })
      },
    },
  })
  await world.run('a', 1)
  await world.client.startOrchestration('b', 'failing')
  assert.equal((await world.end('b')).status, 'Failed')
  const counters = runtime.metricsSnapshot()
  delete counters.orchQueueDepth
  delete counters.workerQueueDepth
  const { orchDispatcherItemsFetched: turns, workerDispatcherItemsFetched: activities, ...rest } = counters
  assert.ok(turns >= 10)
  assert.equal(activities, 4)
  assert.deepEqual(
    rest,
    Object.fromEntries(
      NAMES.filter((name) => !name.endsWith('ItemsFetched')).map((name) => [
        name,
        {
          orchStarts: 4,
          orchCompletions: 3,
          orchFailures: 1,
          orchApplicationErrors: 1,
          activitySuccess: 2,
          activityAppErrors: 2,
          orchContinueAsNew: 1,
          suborchestrationCalls: 2,
        }[name] ?? 0,
      ]),
    ),
  )
  assert.ok(NAMES.every((name) => idle.metricsSnapshot()[name] === 0))
})
