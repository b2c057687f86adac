// Event loops that stand still, processes that are paused, parts that panic, signals. Real processes on a real database.
//
// HOLDFAST_TEST_BLOCK_MS sets how long the loops are blocked; 60000 is the long run:
//   HOLDFAST_TEST_BLOCK_MS=60000 node scripts/lib/server.mjs node --test __test__/engine/liveness.test.mjs

import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import pg from 'pg'

import { Client, PostgresProvider, Runtime } from '../../index.mjs'
import { until } from '../support/live.mjs'
import { databaseUrl, freshSchema } from '../support/world.mjs'

const BLOCK_MS = Number(process.env.HOLDFAST_TEST_BLOCK_MS ?? 8000)
const LIMIT_MS = BLOCK_MS + 60_000

/** A dead process is found within 5 s, a stalled loop within a second; leases are far shorter than a blocked loop. */
const QUICK = {
  heartbeatIntervalMs: 500,
  staleAfterMs: 4000,
  orchestratorLockTimeoutMs: 1000,
  workerLockTimeoutMs: 1000,
  eventLoopStallTimeoutMs: 500,
}

class Worker {
  #child
  #waiting = new Set()
  told = []
  errors = ''

  constructor(world, { options = {}, env = {}, ...config } = {}) {
    const script = fileURLToPath(new URL('../support/liveness-worker.mjs', import.meta.url))
    const told = { url: world.url, schema: world.schema, options: { ...QUICK, ...options }, ...config }
    this.#child = fork(script, { env: { ...process.env, ...env, HOLDFAST_TEST_WORKER: JSON.stringify(told) }, silent: true })
    this.#child.stderr.on('data', (text) => (this.errors += text))
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      this.told.push(JSON.parse(line))
      for (const look of this.#waiting) look()
    })
    this.exited = once(this.#child, 'close').then(([code, signal]) => ({ code, signal }))
    world.t.after(() => this.#child.kill('SIGKILL'))
  }

  get pid() {
    return this.#child.pid
  }

  /** The first thing it tells that `wanted` accepts. */
  async until(wanted) {
    const seen = new Promise((resolve) => {
      const look = () => {
        const found = this.told.find(wanted)
        if (found === undefined) return
        this.#waiting.delete(look)
        resolve(found)
      }
      this.#waiting.add(look)
      look()
    })
    const ended = this.exited.then(({ code, signal }) => {
      throw new Error(`the worker ended: ${code ?? signal} ${this.errors}`)
    })
    const late = delay(LIMIT_MS, undefined, { ref: false }).then(() => {
      throw new Error(`the worker did not tell it: ${wanted}; it told ${JSON.stringify(this.told)}`)
    })
    return await Promise.race([seen, ended, late])
  }

  ready() {
    return this.until((line) => line.ready)
  }

  async stats() {
    const before = this.told.length
    this.#child.send('stats')
    return await this.until((line) => line.stats !== undefined && this.told.indexOf(line) >= before)
  }

  signal(name) {
    this.#child.kill(name)
  }

  stop() {
    this.#child.send('stop')
    return this.exited
  }
}

async function openWorld(t) {
  const [url, schema] = [databaseUrl(), freshSchema()]
  const provider = await PostgresProvider.connectWithSchema(url, schema)
  t.after(() => provider.close())
  const client = new Client(provider)
  return { t, url, schema, client, end: (id) => client.waitForOrchestration(id, LIMIT_MS) }
}

const kindsOf = async (world, id) => (await world.client.readExecutionHistory(id, 1)).map((event) => event.kind)

describe('an event loop that stands still', { concurrency: 2 }, () => {
  for (const [name, started] of [['blocking activity', 'block'], ['blocking orchestration', 'orchestration']]) {
    test(`${name}: it loses no lease and nothing runs twice`, async (t) => {
      const world = await openWorld(t)
      const blocked = new Worker(world)
      await blocked.ready()
      await world.client.startOrchestration('one', name, BLOCK_MS)
      await blocked.until((line) => line.started === started)
      const other = new Worker(world)
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

test('heartbeats go on while every connection of the pool waits for a lock', async (t) => {
  const [url, schema] = [databaseUrl(), freshSchema()]
  const provider = await PostgresProvider.connectWithSchema(url, schema, { maxClients: 2 })
  t.after(() => provider.close())
  const runtime = new Runtime(provider, QUICK)
  runtime.registerOrchestration('nothing', async () => {})
  await runtime.start()
  t.after(() => runtime.shutdown(0))
  const outside = new pg.Client(url)
  await outside.connect()
  await outside.query(`begin; set local search_path to ${schema}; lock table instance in access exclusive mode`)
  const client = new Client(provider)
  const waiting = Array.from({ length: 8 }, (_, index) => client.getStatus(`i${index}`).catch(() => {}))
  const beats = () => provider.stats().counters.heartbeats
  const [before, began] = [beats(), Date.now()]
  while (beats() < before + 8) {
    assert.ok(Date.now() - began < 30_000, 'heartbeats stand still')
    await delay(20)
  }
  assert.equal(provider.stats().counters.heartbeatsFailed, 0)
  assert.equal(runtime.health().status, 'healthy')
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
