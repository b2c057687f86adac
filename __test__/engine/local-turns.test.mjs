// Work that stays in its process: chains of steps that are claimed once, and what must not run without a lease.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { liveWorld, until } from '../support/live.mjs'

test('a chain of activities that is started where it runs is not claimed: its first turn, its activities and its next turns stay in the process', async (t) => {
  const world = await liveWorld(t)
  await world.start({
    activities: { add: (_ctx, n) => n + 1 },
    orchestrations: {
      async main(ctx, n) {
        let last = n
        for (let i = 0; i < 5; i++) last = await ctx.scheduleActivity('add', last)
        return last
      },
    },
  })
  for (let i = 0; i < 10; i++) {
    await world.client.startOrchestration(`i${i}`, 'main', i)
    assert.equal((await world.end(`i${i}`)).output, i + 5)
  }
  const { turnsClaimed, turnsSettled, localStarts, localTurns } = world.provider.stats().counters
  assert.equal(turnsSettled, 60)
  assert.equal(turnsClaimed + localStarts + localTurns, 60)
  assert.equal(localStarts, 10)
  // A machine that stands still makes a result go ahead of its turn.
  assert.ok(localTurns >= 30, `${localTurns} of 50 turns began without a claim`)
  const events = await world.client.readExecutionHistory('i0', 1)
  assert.deepEqual(events.map((event) => event.eventId), Array.from({ length: 12 }, (_, i) => i + 1))
})

test('an event that comes while an activity runs is not lost, and comes before what the activity returns later', async (t) => {
  const world = await liveWorld(t)
  let release
  const held = new Promise((resolve) => (release = resolve))
  let isRunning = false
  await world.start({
    activities: {
      async wait() {
        isRunning = true
        await held
        return 'activity'
      },
    },
    orchestrations: {
      async main(ctx) {
        const { index, value } = await ctx.race(ctx.waitForEvent('go'), ctx.scheduleActivity('wait'))
        return [index, value]
      },
    },
  })
  await world.client.startOrchestration('i', 'main')
  await until(() => isRunning, 'the activity runs')
  await world.client.raiseEvent('i', 'go', 'event')
  assert.deepEqual((await world.end('i')).output, [0, 'event'])
  release()
})

test('the code of a local step runs under a lease, each time once', async (t) => {
  const world = await liveWorld(t)
  const owners = []
  await world.start({
    activities: { add: (_ctx, n) => n + 1 },
    orchestrations: {
      async main(ctx, n) {
        const last = await ctx.scheduleActivity('add', n)
        return await ctx.step('look', async () => {
          const [row] = await world.sql('select owner from turn_queue where instance = $1', [ctx.instanceId])
          owners.push(row.owner)
          return last
        })
      },
    },
  })
  for (let i = 0; i < 10; i++) {
    await world.client.startOrchestration(`i${i}`, 'main', i)
    assert.equal((await world.end(`i${i}`)).output, i + 1)
  }
  assert.equal(owners.length, 10, 'no step ran twice')
  assert.ok(owners.every((owner) => owner !== null), 'each had a lease')
})
