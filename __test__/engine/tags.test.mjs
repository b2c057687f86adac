// Tags: an activity goes to the runtimes that take its tag, and waits while there is none.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { liveWorld, outputOf } from '../support/live.mjs'

const where = (name) => ({ where: async () => name })

test('each activity runs on the runtime that takes its tag', async (t) => {
  const world = await liveWorld(t)
  const orchestrations = {
    async main(ctx) {
      const tags = [undefined, 'gpu', 'cpu', 'gpu']
      const calls = tags.map((tag) => {
        const call = ctx.scheduleActivity('where')
        return tag === undefined ? call : call.withTag(tag)
      })
      return (await ctx.all(calls)).map(({ ok }) => ok)
    },
  }
  await world.start({ orchestrations, activities: where('default') })
  await world.start({ activities: where('gpu'), options: { workerTagFilter: { tags: ['gpu'] } } })
  await world.start({ activities: where('cpu'), options: { workerTagFilter: 'tags', workerTagFilterTags: ['cpu', 'tpu'] } })
  await world.start({ activities: where('never'), options: { workerTagFilter: 'none' } })
  await world.client.startOrchestration('one', 'main')
  assert.deepEqual(outputOf(await world.end('one')), ['default', 'gpu', 'cpu', 'gpu'])
})

test('a runtime for any tag, and one for some and those without, take both', async (t) => {
  for (const workerTagFilter of ['any', { defaultAnd: ['gpu'] }]) {
    const world = await liveWorld(t)
    const orchestrations = {
      main: async (ctx) => [await ctx.scheduleActivity('where').withTag('gpu'), await ctx.scheduleActivity('where')],
    }
    await world.start({ orchestrations, activities: where('here'), options: { workerTagFilter } })
    await world.client.startOrchestration('one', 'main')
    assert.deepEqual(outputOf(await world.end('one')), ['here', 'here'])
  }
})

test('a tag that nobody takes waits: a race with a timer ends the wait, a runtime that takes it the work', async (t) => {
  const world = await liveWorld(t)
  const orchestrations = {
    async main(ctx) {
      const { index } = await ctx.race(ctx.scheduleActivity('where').withTag('gpu'), ctx.scheduleTimer(200))
      return index
    },
    waits: async (ctx) => await ctx.scheduleActivity('where').withTag('gpu'),
  }
  await world.start({ orchestrations, activities: where('default') })
  await world.client.startOrchestration('waits', 'waits')
  await world.client.startOrchestration('race', 'main')
  assert.equal(outputOf(await world.end('race')), 1)
  await world.start({ activities: where('late'), options: { workerTagFilter: { tags: ['gpu'] } } })
  assert.equal(outputOf(await world.end('waits')), 'late')
})
