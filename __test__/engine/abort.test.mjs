// Calls given up by an AbortSignal, on the real engine: the reason is what the caller sees, and nothing is left behind.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { liveApp, liveWorld, until } from '../support/live.mjs'
import { freshSchema } from '../support/world.mjs'

const waiting = { main: async (ctx) => ctx.waitForEvent('never') }

/** What a promise rejects with. */
const thrown = (promise) => promise.then(() => assert.fail('must reject'), (error) => error)

test('abort: every kind of wait ends with the reason given', async (t) => {
  const app = await liveApp(t, waiting)
  await app.client.startOrchestration('one', 'main')
  const { client } = app
  const job = await client.enqueueActivity('nobody', null, { delayMs: 60_000 })
  const waits = {
    inPlace: (signal) => client.waitForOrchestration('one', { signal }),
    after: (signal) => client.waitForOrchestration('one', 60_000, { signal }),
    typed: (signal) => client.waitForOrchestrationTyped('one', { timeoutMs: 60_000, signal }),
    handle: (signal) => client.handle('one').result({ signal }),
    status: (signal) => client.waitForStatusChange('one', 1_000, 60_000, { timeoutMs: 60_000, signal }),
    value: (signal) => client.waitForValue('one', 'key', { signal }),
    job: (signal) => job.result({ signal }),
  }
  for (const [kind, wait] of Object.entries(waits)) {
    const controller = new AbortController()
    const ended = thrown(wait(controller.signal))
    const reason = new Error(`enough of ${kind}`)
    setImmediate(() => controller.abort(reason))
    assert.equal(await ended, reason)
  }
})

test('abort: a time limit in options is one', async (t) => {
  const app = await liveApp(t, waiting)
  await app.client.startOrchestration('one', 'main')
  await assert.rejects(app.client.waitForOrchestration('one', { timeoutMs: 1 }), { code: 'TIMEOUT', message: /1 ms/ })
  await assert.rejects(app.client.waitForOrchestration('one', { signal: 'now' }), { code: 'INVALID_ARGUMENT', message: /AbortSignal/ })
})

test('abort: a signal aborted already refuses a call before anything is sent', async (t) => {
  const world = await liveWorld(t)
  const { client } = world
  const reason = { no: 'error at all' }
  const signal = AbortSignal.abort(reason)
  const before = await world.rows()
  const { acquires } = world.provider.stats().pool
  const calls = [
    client.start('main', 1, { id: 'one', signal }),
    client.startOrchestration('one', 'main', 1, { signal }),
    client.startOrchestrationTyped('one', 'main', 1, { signal }),
    client.startOrchestrationVersioned('one', 'main', 1, '1.0.0', { signal }),
    client.startOrchestrationVersionedTyped('one', 'main', 1, '1.0.0', { signal }),
    client.startMany([{ orchestration: 'main', id: 'one' }], { signal }),
    client.cancelInstance('one', 'why', { signal }),
    client.cancelOrchestration('one', 'why', { signal }),
    client.handle('one').cancel('why', { signal }),
    client.handle('one').status({ signal }),
    client.handle('one').raise('go', 1, { signal }),
    client.enqueueActivity('mail', 1, { signal }),
    client.enqueueActivities([{ activity: 'mail', input: 1 }], { signal }),
    client.activityHandle('job').cancel('why', { signal }),
    client.activityHandle('job').status({ signal }),
    client.raiseEvent('one', 'go', 1, { signal }),
    client.enqueueEvent('one', 'mail', 1, { signal }),
    client.getStatus('one', { signal }),
    client.waitForOrchestration('one', { signal }),
  ]
  for (const call of calls) assert.equal(await thrown(call), reason)
  assert.equal(world.provider.stats().pool.acquires, acquires)
  assert.deepEqual(await world.rows(), before)
})

test('abort: every call of the client takes a signal', async (t) => {
  const { client } = await liveWorld(t)
  const before = {
    getOrchestrationStatus: ['one'],
    getInstanceInfo: ['one'],
    getExecutionInfo: ['one', 1],
    listExecutions: ['one'],
    readExecutionHistory: ['one', 1],
    listAllInstances: [],
    listInstancesByStatus: ['Failed'],
    listInstances: [{}],
    explain: ['one'],
    resume: ['one'],
    resumeBulk: [{}],
    retryInstance: ['one'],
    getInstanceTree: ['one'],
    deleteInstance: ['one', true],
    deleteInstanceBulk: [{}],
    pruneExecutions: ['one'],
    pruneExecutionsBulk: [{}],
    getSystemMetrics: [],
    getQueueDepths: [],
    getOrchestrationStats: ['one'],
    getValue: ['one', 'key'],
    getKvAllValues: ['one'],
    waitForValue: ['one', 'key'],
    getActivity: ['job'],
    listActivities: [{}],
    cancelActivity: ['job', 'why'],
    retryActivity: ['job'],
    deleteActivity: ['job'],
  }
  const signal = AbortSignal.abort('enough')
  for (const [name, given] of Object.entries(before)) assert.equal(await thrown(client[name](...given, { signal })), 'enough', name)
  const elsewhere = ['start', 'waitFor', 'raise', 'enqueue', 'cancelInstance', 'cancelOrchestration', 'getStatus']
  const local = ['constructor', 'handle', 'activityHandle', 'pollForEnd', 'audit']
  for (let proto = Object.getPrototypeOf(client); proto !== Object.prototype; proto = Object.getPrototypeOf(proto)) {
    for (const name of Object.getOwnPropertyNames(proto)) {
      const known = name in before || local.includes(name) || elsewhere.some((start) => name.startsWith(start))
      assert.ok(known, `${name} has no case here`)
    }
  }
})

test('abort: many starts and tasks in flight are given up, and what is left can be done again', async (t) => {
  const { client } = await liveWorld(t)
  const items = Array.from({ length: 9000 }, (_, i) => ({ orchestration: 'main', id: `order-${i}`, input: i }))
  const controller = new AbortController()
  const starting = thrown(client.startMany(items, { signal: controller.signal }))
  setImmediate(() => controller.abort('enough'))
  assert.equal(await starting, 'enough')
  const started = await client.startMany(items)
  assert.ok(started.every(({ same }) => same))
  assert.equal((await client.getQueueDepths()).orchestratorQueue, items.length)
  const tasks = items.map(({ id, input }) => ({ activity: 'mail', id, input }))
  const second = new AbortController()
  const queueing = thrown(client.enqueueActivities(tasks, { signal: second.signal }))
  setImmediate(() => second.abort('enough'))
  assert.equal(await queueing, 'enough')
  await client.enqueueActivities(tasks)
  assert.equal((await client.getQueueDepths()).workerQueue, tasks.length)
})

test('abort: a call that waits for a connection leaves the queue, one in flight takes its connection along', async (t) => {
  const applicationName = `abort-${freshSchema()}`
  const world = await liveWorld(t, { pool: { maxClients: 1, applicationName } })
  const { client, provider } = world
  await world.sql('begin')
  await world.sql('lock table instance in access exclusive mode')
  const [inFlight, queued] = [new AbortController(), new AbortController()]
  const first = thrown(client.getStatus('one', { signal: inFlight.signal }))
  const blocked = 'select pid from pg_stat_activity where application_name = $1 and wait_event_type = $2'
  const [{ pid }] = await until(async () => {
    const rows = await world.sql(blocked, [applicationName, 'Lock'])
    return rows.length > 0 && rows
  }, 'the first call is in flight')
  const second = thrown(client.getStatus('one', { signal: queued.signal }))
  await until(() => provider.stats().pool.waiting === 1, 'the second call waits')
  queued.abort('second')
  assert.equal(await second, 'second')
  await until(() => provider.stats().pool.waiting === 0, 'it left the queue')
  inFlight.abort('first')
  assert.equal(await first, 'first')
  await world.sql('rollback')
  assert.equal((await client.getStatus('one')).status, 'NotFound', 'the place is free again')
  const alive = 'select 1 from pg_stat_activity where pid = $1 and application_name = $2'
  await until(async () => (await world.sql(alive, [pid, applicationName])).length === 0, 'the connection of the first call is gone')
})
