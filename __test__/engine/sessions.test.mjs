// Sessions: the activities of one session run on one node, while it lives and the session is used.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { gate, liveWorld, outputOf, until } from '../support/live.mjs'

/** Leases and idle times of a second and less. */
const QUICK = { sessionLockTimeoutMs: 400, workerLockTimeoutMs: 800, sessionIdleTimeoutMs: 500, orchestrationConcurrency: 0 }

const onSession = async (ctx, { session, count }) => {
  const calls = Array.from({ length: count }, () => ctx.scheduleActivityOnSession('where', null, session))
  return (await ctx.all(calls)).map(({ ok }) => ok)
}

async function worldWithWorkers(t, names, options = {}) {
  const world = await liveWorld(t)
  await world.start({ orchestrations: { main: onSession }, options: { workerConcurrency: 0 } })
  const workers = {}
  for (const name of names) {
    workers[name] = await world.start({ activities: { where: async () => name }, options: { ...QUICK, workerNodeId: name, ...options } })
  }
  return { ...world, workers }
}

test('all activities of a session run on the node that owns it', async (t) => {
  const world = await worldWithWorkers(t, ['a', 'b'], { sessionIdleTimeoutMs: 60_000 })
  const [owner] = outputOf(await world.run('first', { session: 's', count: 1 }))
  const later = outputOf(await world.run('later', { session: 's', count: 20 }))
  assert.deepEqual(new Set(later), new Set([owner]))
  const rows = await world.sql('select session, owner from session')
  assert.deepEqual(rows, [{ session: 's', owner }])
})

test('a session goes to another node when its owner says goodbye', async (t) => {
  const world = await worldWithWorkers(t, ['a'], { sessionIdleTimeoutMs: 60_000 })
  assert.deepEqual(outputOf(await world.run('first', { session: 's', count: 2 })), ['a', 'a'])
  await world.workers.a.shutdown(1000)
  await world.start({ activities: { where: async () => 'b' }, options: { ...QUICK, workerNodeId: 'b' } })
  assert.deepEqual(outputOf(await world.run('later', { session: 's', count: 2 })), ['b', 'b'])
})

test('a session that is idle is free', async (t) => {
  const world = await worldWithWorkers(t, ['a'])
  assert.deepEqual(outputOf(await world.run('first', { session: 's', count: 1 })), ['a'])
  await until(async () => (await world.sql("select from session where leased_until < now()")).length === 1, 'the end of the session')
  await world.start({ activities: { where: async () => 'b' }, options: { ...QUICK, workerNodeId: 'b' } })
  const found = outputOf(await world.run('later', { session: 's', count: 1 }))
  assert.equal(found.length, 1)
})

test('a node keeps its session by its id over a restart', async (t) => {
  const world = await worldWithWorkers(t, ['a', 'b'], { sessionIdleTimeoutMs: 60_000, sessionLockTimeoutMs: 60_000, workerLockTimeoutMs: 60_000, sessionLockRenewalBufferMs: 40_000, workerLockRenewalBufferMs: 40_000 })
  const [owner] = outputOf(await world.run('first', { session: 's', count: 1 }))
  // Another runtime of the same id holds the session while the first one goes.
  await world.start({ activities: { where: async () => `${owner} again` }, options: { ...QUICK, workerNodeId: owner } })
  await world.workers[owner].shutdown(1000)
  assert.deepEqual(outputOf(await world.run('later', { session: 's', count: 3 })), Array(3).fill(`${owner} again`))
})

test('a runtime has only so many sessions in progress; their other activities wait', async (t) => {
  const world = await liveWorld(t)
  const open = gate()
  let running = 0
  let most = 0
  const where = async () => {
    most = Math.max(most, ++running)
    await open.promise
    running -= 1
  }
  const main = async (ctx) => {
    await ctx.all([1, 2, 3].map((n) => ctx.scheduleActivityOnSession('where', null, `s${n}`)))
    return 'done'
  }
  await world.start({ orchestrations: { main }, activities: { where }, options: { maxSessionsPerRuntime: 2 } })
  await world.client.startOrchestration('one', 'main')
  await until(() => running === 2, 'two sessions in progress')
  open.open()
  assert.equal(outputOf(await world.end('one')), 'done')
  assert.equal(most, 2)
})
