// Why is this instance not running? The engine's own answer, for everything that it can wait for and for what is wrong.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { gate, liveWorld, until } from '../support/live.mjs'

describe('explain', { concurrency: 4 }, () => {
  test('tells what an instance waits for: timers, events, queues, activities with their node, children', async (t) => {
    const world = await liveWorld(t)
    const running = gate()
    t.after(() => running.open())
    const runtime = await world.start({
      activities: { slow: () => running.promise },
      orchestrations: {
        main: async (ctx) =>
          await ctx.all([ctx.scheduleTimer(3_600_000), ctx.waitForEvent('go'), ctx.dequeueEvent('inbox'), ctx.scheduleActivity('slow'), ctx.scheduleSubOrchestrationWithId('child', 'kid')]),
        child: async (ctx) => await ctx.waitForEvent('never'),
      },
    })
    await world.client.startOrchestration('one', 'main')
    await until(async () => (await world.sql('select 1 from activity_queue where owner is not null')).length === 1, 'it runs')
    await until(async () => (await world.client.getStatus('kid')).status === 'Running', 'the child runs')
    const told = await world.client.explain('one')
    assert.equal(told.status, 'Running')
    assert.deepEqual(await world.client.audit(), [])
    assert.deepEqual(told.problems, [])
    assert.equal(told.orchestrationName, 'main')
    const by = Object.fromEntries(told.waiting.map((each) => [each.kind, each]))
    assert.deepEqual(told.waiting.map((each) => each.kind), ['event', 'queue', 'timer', 'activity', 'child'])
    assert.ok(Math.abs(by.timer.until - Date.now() - 3_600_000) < 120_000)
    assert.deepEqual(by.event, { kind: 'event', name: 'go' })
    assert.deepEqual(by.queue, { kind: 'queue', name: 'inbox' })
    assert.deepEqual(by.child, { kind: 'child', instanceId: 'kid', name: 'child', status: 'Running' })
    const { name, attempt, delivery, leasedBy, leaseUntil } = by.activity
    assert.deepEqual([name, attempt, delivery], ['slow', 1, 1])
    const [{ id }] = await world.sql('select id from node')
    assert.equal(leasedBy, id)
    assert.ok(leaseUntil > Date.now() - 60_000)
    assert.equal(told.turn.due, false)
    assert.match(told.summary, /^waits for event 'go' and 4 more$/)
    assert.equal(String(told), told.text)
    assert.match(told.text, /^one main 1\.0\.0: waits for .*\n {2}waits for event 'go'\n/)
    running.open()
    await runtime.shutdown(1000)
  })

  test('names the node that died with an activity, tells what that told last, and knows jobs that have ended', async (t) => {
    const world = await liveWorld(t)
    await world.client.enqueueActivity('work', null, { id: 'job' })
    await world.sql(`update activity_queue set owner = 'gone', owner_epoch = 0, leased_at = now(), due_at = now() + interval '1 hour',
      heartbeat = '{"page":7}', heartbeat_at = now()`)
    const held = await world.client.explain('job')
    assert.ok(held.problems.includes('node gone, which holds activity work, is silent; recovery frees it'), held.text)
    assert.equal(held.activityName, 'work')
    assert.deepEqual(held.waiting[0].heartbeatDetails, { page: 7 })
    assert.match(held.text, /told \{"page":7\} at /)
    const other = await world.start({ activities: { other: () => null } })
    await until(async () => (await world.client.explain('job')).waiting[0].lostBy === 'gone', 'the lease is freed')
    const lost = await world.client.explain('job')
    assert.ok(lost.problems.includes('node gone died while it held activity work; such work is taken one at a time'), lost.text)
    await other.shutdown(0)
    await world.start({ activities: { work: () => { throw new Error('it cannot be done') } } })
    await until(async () => (await world.client.explain('job')).status === 'Failed', 'it ends')
    const ended = await world.client.explain('job')
    assert.deepEqual([ended.activityName, ended.summary, ended.waiting], ['work', 'failed: it cannot be done', []])
    assert.equal((await world.client.explain('nobody')).status, 'NotFound')
  })

  test('tells that no live node has the orchestration, the version or the activity', async (t) => {
    const world = await liveWorld(t)
    await world.client.startOrchestration('early', 'main')
    assert.deepEqual((await world.client.explain('early')).problems, ['no live node at all'])
    await world.start({ orchestrations: { main: async (ctx) => await ctx.scheduleActivity('mail'), other: async () => 1 } })
    await world.client.startOrchestrationVersioned('versioned', 'main', null, '2.0.0')
    await world.client.startOrchestration('unknown', 'nobody')
    await until(async () => (await world.client.explain('early')).problems[0] === 'no live node has activity mail', 'the activity')
    const early = await world.client.explain('early')
    assert.equal(early.summary, 'no live node has activity mail')
    assert.equal(early.waiting[0].kind, 'activity')
    assert.ok(early.waiting[0].nextAt > 0)
    assert.deepEqual((await world.client.explain('versioned')).problems, ['no live node has orchestration main 2.0.0'])
    const unknown = await world.client.explain('unknown')
    assert.deepEqual([unknown.status, unknown.problems], ['Pending', ['no live node has orchestration nobody']])
    await world.sql("update activity_queue set tag = 'gpu'")
    await world.start({ activities: { mail: async () => 'sent' } })
    await until(async () => (await world.client.explain('early')).problems[0] === 'no live node that has activity mail takes tag gpu', 'the tag')
    await world.sql('update activity_queue set tag = null, due_at = clock_timestamp()')
    assert.equal((await world.end('early')).output, 'sent')
  })

  test('tells of a history that no live node replays; a node with the range takes it', async (t) => {
    const world = await liveWorld(t)
    const orchestrations = { main: async (ctx) => await ctx.waitForEvent('go') }
    await world.start({ orchestrations })
    await world.client.startOrchestration('one', 'main')
    await until(async () => (await world.client.getStatus('one')).status === 'Running', 'it runs')
    await world.sql('update turn_queue set replay_version = 9000000000000')
    await world.client.raiseEvent('one', 'go', 1)
    const text = 'its history was written by version 9.0.0 of holdfast, which no live node replays (supportedReplayVersions)'
    assert.deepEqual((await world.client.explain('one')).problems, [text])
    await world.start({ orchestrations, options: { supportedReplayVersions: { min: '9.0.0', max: '9.9.9' } } })
    assert.equal((await world.end('one')).output, 1)
  })

  test('tells ends, parks, messages without a start, unknown ids, and a turn that can never be claimed', async (t) => {
    const world = await liveWorld(t)
    await world.start({
      orchestrations: {
        done: async () => 1,
        fails: async () => {
          throw new Error('no luck')
        },
        foreign: async () => await new Promise((resolve) => setTimeout(resolve, 60_000).unref()),
        waits: async (ctx) => await ctx.waitForEvent('go'),
        parent: async (ctx) => await ctx.scheduleSubOrchestrationWithId('foreign', 'kid'),
      },
    })
    for (const id of ['done', 'fails', 'waits']) await world.client.startOrchestration(id, id)
    await world.client.startOrchestration('boss', 'parent')
    await world.client.raiseEvent('early', 'go')
    const explain = (id) => world.client.explain(id)
    await world.end('done')
    await world.end('fails')
    await world.end('kid')
    assert.equal((await explain('done')).summary, 'completed')
    assert.equal((await explain('done')).turn, undefined)
    assert.equal((await explain('fails')).summary, 'failed: no luck')
    const kid = await explain('kid')
    assert.equal(kid.status, 'Parked')
    assert.equal(kid.parked.code, 'FOREIGN_WAIT')
    assert.match(kid.summary, /^parked: /)
    const boss = await explain('boss')
    assert.deepEqual(boss.problems, ['child kid is parked: FOREIGN_WAIT'])
    assert.equal(boss.waiting[0].status, 'Parked (FOREIGN_WAIT)')
    assert.deepEqual((await explain('early')).problems, ['1 messages wait for its start'])
    const nobody = await explain('nobody')
    assert.deepEqual([nobody.status, nobody.summary, nobody.waiting], ['NotFound', 'no such instance', []])
    await until(async () => (await world.client.getStatus('waits')).status === 'Running', 'it waits')
    await world.sql("delete from turn_queue where instance = 'waits'")
    assert.deepEqual((await explain('waits')).problems, ['its turn row is missing: it can never be claimed'])
    assert.deepEqual(await world.client.audit(), [{ what: 'an instance that has not ended has no turn row', instance: 'waits', event: null }])
  })
})
