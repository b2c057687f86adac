// Event loops that stand still, processes that are paused, parts that panic, signals. Real processes on a real database.
//
// HOLDFAST_TEST_BLOCK_MS sets how long loops are blocked and the pool is held; 60000 is the long run, which
// `npm run recovery -- --blocked` does.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'

import pg from 'pg'

import { Client, PostgresProvider, Runtime } from '../../index.mjs'
import { until } from '../support/live.mjs'
import { BLOCK_MS, kindsOf, openWorld, QUICK, Worker } from '../support/liveness.mjs'
import { databaseUrl, freshSchema } from '../support/world.mjs'

/**
 * Far shorter than a loop is blocked, so that only renewals keep them. A machine so busy that a process stands still for half
 * a lease loses it by right; with a second's lease that was seen, with these it takes two seconds.
 */
const RENEWED = { orchestratorLockTimeoutMs: QUICK.staleAfterMs, workerLockTimeoutMs: QUICK.staleAfterMs }

describe('an event loop that stands still', { concurrency: 2 }, () => {
  for (const [name, started] of [['blocking activity', 'block'], ['blocking orchestration', 'orchestration']]) {
    test(`${name}: it loses no lease and nothing runs twice`, async (t) => {
      const world = await openWorld(t)
      const blocked = new Worker(world, { options: RENEWED })
      await blocked.ready()
      await world.client.startOrchestration('one', name, BLOCK_MS)
      await blocked.until((line) => line.started === started)
      const other = new Worker(world, { options: RENEWED })
      await other.ready()
      const end = await world.end('one')
      assert.equal(end.status, 'Completed', end.error)
      if (started === 'block') assert.equal(end.output, blocked.pid)
      const { stats } = await blocked.stats()
      assert.deepEqual([stats.leasesLost, stats.declaredDead, stats.selfFences, stats.loopHangs], [0, 0, 0, 0])
      assert.equal(stats.loopStalls, 1)
      // The answer can come before the loop was heard again.
      await until(async () => (await blocked.stats()).health.status === 'healthy', 'it is healthy again')
      const starts = [...blocked.told, ...other.told].filter((line) => line.started === started)
      assert.equal(starts.length, 1, 'it ran once')
      const { stats: peers } = await other.stats()
      assert.equal(peers.nodesRecovered, 0, 'no false death')
      await Promise.all([blocked.stop(), other.stop()])
    })
  }

  test('beyond the hang limit its work goes on elsewhere, once', async (t) => {
    const world = await openWorld(t)
    const options = { eventLoopHangTimeoutMs: 1500, workerLockTimeoutMs: '10m' }
    const blocked = new Worker(world, { options })
    await blocked.ready()
    await world.client.startOrchestration('one', 'waiting', 16_000)
    await blocked.until((line) => line.started === 'wait')
    // Longer than another process needs to start, on a busy machine too.
    await world.client.startOrchestration('two', 'blocking activity', 12_000)
    await blocked.until((line) => line.started === 'block')
    const other = new Worker(world, { options, neverBlocks: true })
    const end = await world.end('one')
    assert.deepEqual([end.status, end.output], ['Completed', other.pid])
    assert.equal((await kindsOf(world, 'one')).filter((kind) => kind === 'ActivityCompleted').length, 1)
    const aborted = await blocked.until((line) => line.aborted)
    assert.equal(aborted.aborted, 'LEASE_LOST')
    assert.equal((await blocked.stats()).stats.loopHangs, 1)
    await Promise.all([blocked.stop(), other.stop()])
  })

  test('the process ends when it is to, with a last word', async (t) => {
    const world = await openWorld(t)
    const options = { eventLoopHangTimeoutMs: 1500, eventLoopHangAction: 'exit' }
    const blocked = new Worker(world, { options })
    await blocked.ready()
    await world.client.startOrchestration('one', 'blocking activity', 600_000)
    await blocked.until((line) => line.started === 'block')
    assert.deepEqual(await blocked.exited, { code: null, signal: 'SIGABRT' })
    assert.match(blocked.errors, /the JavaScript loop has stood still for \d+ s/)
  })
})

test('a paused process writes nothing that was taken over, and goes on', async (t) => {
  const world = await openWorld(t)
  // Only recovery can free what it holds.
  const options = { workerLockTimeoutMs: '10m', orchestratorLockTimeoutMs: '10m' }
  const paused = new Worker(world, { options })
  await paused.ready()
  await world.client.startOrchestration('one', 'waiting', 2000)
  await paused.until((line) => line.started === 'wait')
  paused.signal('SIGSTOP')
  const other = new Worker(world, { options })
  const end = await world.end('one')
  assert.deepEqual([end.status, end.output], ['Completed', other.pid])
  await other.stop()
  paused.signal('SIGCONT')
  await world.client.startOrchestration('two', 'steps', 5)
  assert.equal((await world.end('two')).output, 5)
  const { stats, health } = await paused.stats()
  assert.equal(stats.declaredDead, 1)
  assert.equal(health.status, 'healthy')
  assert.equal((await kindsOf(world, 'one')).filter((kind) => kind === 'ActivityCompleted').length, 1)
  assert.equal(Number((await world.client.getStatus('one')).output), other.pid)
  await paused.stop()
})

describe('a part that panics is started again', { concurrency: 2 }, () => {
  const POINTS = [
    'claim.turns.after:3',
    'claim.activities.before:3',
    'turn.load.before:2',
    'turn.activate.before:2',
    'turn.match.before:2',
    'activity.start.before:2',
    'activity.result.before:2',
    'commit.batch.before:3',
    'commit.batch.after:3',
    'turn.settled.before:2',
    'activity.settled.before:2',
    'heartbeat.before:2',
    'heartbeat.after:2',
    'renew.before:1',
  ]
  for (const point of POINTS) {
    test(`at ${point}`, async (t) => {
      const world = await openWorld(t)
      const worker = new Worker(world, { env: { HOLDFAST_PANIC_AT: point } })
      await worker.ready()
      const ids = Array.from({ length: 12 }, (_, index) => `i${index}`)
      await Promise.all(ids.map((id) => world.client.startOrchestration(id, 'steps', 4)))
      // Long enough for a renewal and a few heartbeats.
      await world.client.startOrchestration('slow', 'waiting', 1500)
      const ends = await Promise.all([...ids, 'slow'].map((id) => world.end(id)))
      for (const end of ends) assert.equal(end.status, 'Completed', end.error)
      for (const id of ids) {
        const completed = (await kindsOf(world, id)).filter((kind) => kind === 'ActivityCompleted')
        assert.equal(completed.length, 4)
      }
      assert.match(worker.errors, new RegExp(`failpoint ${point.split(':')[0]}`), 'it was reached')
      const { stats, health } = await worker.stats()
      assert.ok(stats.partsRestarted >= 1)
      assert.equal(stats.poisoned, 0)
      assert.equal(health.status, 'healthy')
      await worker.stop()
    })
  }
})

describe('a part that stands still lets others take over', { concurrency: 2 }, () => {
  // The claimer after its claim, the committer, and the thread of heartbeats and renewals.
  const POINTS = { 'claim.turns.after:1': 'claimer', 'commit.batch.before:1': 'committer', 'renew.before:1': null }
  for (const [point, part] of Object.entries(POINTS)) {
    test(`at ${point}`, async (t) => {
      const world = await openWorld(t)
      // Leases do not free anything within the test, except that a renewal needs one that is renewed soon.
      const options = { orchestratorLockTimeoutMs: '10m', workerLockTimeoutMs: part === null ? 5000 : '10m' }
      const stuck = new Worker(world, { options, env: { HOLDFAST_STALL_AT: point, HOLDFAST_TEST_PATIENCE_MS: '500' } })
      await stuck.ready()
      await world.client.startOrchestration('one', 'waiting', 600_000)
      if (part === null) await stuck.until((line) => line.started === 'wait')
      else await until(async () => (await stuck.stats()).health.stuckPart === part, `the ${part} is found stuck`)
      const other = new Worker(world, { options, neverBlocks: true })
      await other.ready()
      assert.equal((await world.end('one')).output, other.pid)
      await until(async () => (await other.stats()).stats.nodesRecovered === 1, 'it is taken for dead')
      const { health } = await stuck.stats()
      assert.deepEqual([health.status, health.claims], ['unhealthy', 'nothing'])
      await other.stop()
    })
  }

  // Answers are handed out on the thread of the event loop, so that this one can say nothing any more.
  test('at turn.match.before:1', async (t) => {
    const world = await openWorld(t)
    const options = { orchestratorLockTimeoutMs: '10m', workerLockTimeoutMs: '10m' }
    const stuck = new Worker(world, { options, env: { HOLDFAST_STALL_AT: 'turn.match.before:1', HOLDFAST_TEST_PATIENCE_MS: '500' } })
    await stuck.ready()
    await world.client.startOrchestration('one', 'waiting', 600_000)
    await until(() => stuck.isSilentFor(2000), 'its event loop stands still')
    const other = new Worker(world, { options, neverBlocks: true })
    await other.ready()
    assert.equal((await world.end('one')).output, other.pid)
    await until(async () => (await other.stats()).stats.nodesRecovered === 1, 'it is taken for dead')
    await other.stop()
  })
})

describe('signals', { concurrency: 2 }, () => {
  test('the first lets running work end, and the process ends by itself', async (t) => {
    const world = await openWorld(t)
    const worker = new Worker(world, { shutdownOn: { signals: ['SIGTERM', 'SIGINT'], timeoutMs: 20_000 } })
    await worker.ready()
    await world.client.startOrchestration('one', 'waiting', 1000)
    await worker.until((line) => line.started === 'wait')
    worker.signal('SIGTERM')
    assert.deepEqual(await worker.exited, { code: 0, signal: null })
    assert.ok(!worker.told.some((line) => line.aborted), 'it was not told to stop')
    const next = new Worker(world)
    assert.deepEqual([(await world.end('one')).output, next.told.some((line) => line.started)], [worker.pid, false])
    await next.stop()
  })

  test('the second ends the waiting', async (t) => {
    const world = await openWorld(t)
    const worker = new Worker(world, { shutdownOn: { signals: ['SIGTERM'], timeoutMs: 600_000 } })
    await worker.ready()
    await world.client.startOrchestration('one', 'waiting', 6000)
    await worker.until((line) => line.started === 'wait')
    worker.signal('SIGTERM')
    while ((await worker.stats()).health.state !== 'stopping');
    worker.signal('SIGTERM')
    assert.equal((await worker.until((line) => line.aborted)).aborted, 'SHUTDOWN')
    assert.deepEqual(await worker.exited, { code: 0, signal: null })
  })

  test('a list that no process can listen to is refused, and listeners go with the runtime', async (t) => {
    const world = await openWorld(t)
    const provider = await PostgresProvider.connectWithSchema(world.url, world.schema)
    const runtime = new Runtime(provider)
    for (const bad of [[], ['SIGKILL'], ['TERM'], 'SIGTERM', undefined]) {
      assert.throws(() => runtime.shutdownOn(bad), { code: 'INVALID_ARGUMENT' })
    }
    assert.throws(() => runtime.shutdownOn(['SIGUSR2'], { timeoutMs: -1 }), { code: 'INVALID_ARGUMENT' })
    const before = process.listenerCount('SIGUSR2')
    runtime.shutdownOn(['SIGUSR2', 'SIGUSR2'])
    assert.equal(process.listenerCount('SIGUSR2'), before + 1)
    runtime.shutdownOn(['SIGUSR2'])()
    assert.equal(process.listenerCount('SIGUSR2'), before + 1)
    await runtime.shutdown()
    assert.equal(process.listenerCount('SIGUSR2'), before)
    await provider.close()
  })
})

test('heartbeats and renewals go on while every connection of the pool waits for a lock', async (t) => {
  const [url, schema] = [databaseUrl(), freshSchema()]
  const provider = await PostgresProvider.connectWithSchema(url, schema, { maxClients: 2 })
  t.after(() => provider.close())
  const runtime = new Runtime(provider, QUICK)
  let tell
  const begins = new Promise((resolve) => (tell = resolve))
  runtime.registerActivity('hold', (ctx) => new Promise((resolve) => (tell(), ctx.signal.addEventListener('abort', resolve))))
  await runtime.start()
  t.after(() => runtime.shutdown(0))
  const outside = new pg.Client(url)
  await outside.connect()
  await new Client(provider).enqueueActivity('hold')
  await begins
  await outside.query(`begin; set local search_path to ${schema}; lock table instance in access exclusive mode`)
  const client = new Client(provider)
  let ends = false
  const waiting = Array.from({ length: 8 }, async (_, index) => {
    while (!ends) await client.getStatus(`i${index}`).catch(() => delay(10))
  })
  const beats = () => provider.stats().counters.heartbeats
  const [before, began] = [beats(), Date.now()]
  const held = () => Date.now() - began
  let [last, heard, longest] = [before, began, 0]
  while (held() < BLOCK_MS) {
    await delay(20)
    if (beats() === last) continue
    longest = Math.max(longest, Date.now() - heard)
    ;[last, heard] = [beats(), Date.now()]
  }
  // Half a stale age without one would be a node that looks dead soon.
  assert.ok(longest < QUICK.staleAfterMs / 2, `the longest time without a heartbeat was ${longest} ms`)
  assert.ok(beats() >= before + BLOCK_MS / QUICK.heartbeatIntervalMs / 2)
  assert.equal(provider.stats().counters.heartbeatsFailed, 0)
  assert.equal(runtime.health().fenced, false)
  // Its lease of a second was renewed all the time: nobody claimed it again.
  const { rows } = await outside.query('select deliveries, due_at > clock_timestamp() as held from activity_queue')
  assert.deepEqual(rows, [{ deliveries: 1, held: true }])
  assert.equal(provider.stats().counters.leasesLost, 0)
  ends = true
  await outside.query('rollback')
  await outside.end()
  await Promise.all(waiting)
})

test('health tells the state from before the start to after the end', async (t) => {
  const world = await openWorld(t)
  const provider = await PostgresProvider.connectWithSchema(world.url, world.schema)
  t.after(() => provider.close())
  const runtime = new Runtime(provider, { workerNodeId: 'probe', orchestrationConcurrency: 3, workerConcurrency: 5 })
  runtime.registerOrchestration('nothing', async () => {})
  assert.deepEqual([runtime.health().state, runtime.health().status], ['new', 'unhealthy'])
  const starting = runtime.start()
  assert.equal(runtime.health().state, 'starting')
  await starting
  const health = runtime.health()
  assert.deepEqual([health.state, health.status, health.reasons], ['started', 'healthy', []])
  assert.deepEqual([health.nodeId, health.fenced, health.claims, health.eventLoop], ['probe', false, 'all', 'healthy'])
  assert.deepEqual([health.orchestrationSlots, health.activitySlots], [{ used: 0, free: 3 }, { used: 0, free: 5 }])
  assert.ok(health.heartbeatAgeMs < 5000 && health.epoch > 0 && health.databaseReachable)
  await runtime.shutdown()
  assert.deepEqual([runtime.health().state, runtime.health().status], ['stopped', 'unhealthy'])
})

test('a shutdown during the start waits for it and stops the runtime', async (t) => {
  const world = await openWorld(t)
  const provider = await PostgresProvider.connectWithSchema(world.url, world.schema)
  t.after(() => provider.close())
  const runtime = new Runtime(provider)
  runtime.registerOrchestration('nothing', async () => {})
  const starting = runtime.start()
  await runtime.shutdown()
  await starting
  assert.equal(runtime.health().state, 'stopped')
  await assert.rejects(runtime.start(), { code: 'RUNTIME_STARTED' })
})
