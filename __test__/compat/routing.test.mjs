// Rules "Sessions and tags": which runtime runs an activity.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { liveApp, liveWorld, outputOf, until } from '../support/live.mjs'

const where = { where: async (ctx) => [ctx.workerId, ctx.tag(), ctx.sessionId] }
const main = function* (ctx, tag) {
  const step = ctx.scheduleActivity('where')
  const [worker] = yield tag === null ? step : step.withTag(tag)
  return worker
}

describe('workerTagFilter', () => {
  const filters = [
    ['absent', undefined, [null]],
    ['defaultOnly', 'defaultOnly', [null]],
    ['any', 'any', [null, 'gpu', 'cpu']],
    ['tags', { tags: ['gpu'] }, ['gpu']],
    ['defaultAnd', { defaultAnd: ['gpu'] }, [null, 'gpu']],
  ]
  for (const [name, workerTagFilter, served] of filters) {
    test(`${name} takes ${served.map((tag) => tag ?? 'untagged').join(', ')} and leaves the rest to others`, async (t) => {
      const world = await liveWorld(t)
      const options = { workerNodeId: 'mine', ...(workerTagFilter === undefined ? {} : { workerTagFilter }) }
      await world.start({ activities: where, orchestrations: { main }, options })
      const tags = [null, 'gpu', 'cpu']
      for (const tag of tags) await world.client.startOrchestration(`i-${tag}`, 'main', tag)
      for (const tag of served) assert.equal(outputOf(await world.end(`i-${tag}`)), 'mine')
      await world.start({ activities: where, options: { workerNodeId: 'other', workerTagFilter: 'any', orchestrationConcurrency: 0 } })
      for (const tag of tags) if (!served.includes(tag)) assert.equal(outputOf(await world.end(`i-${tag}`)), 'other')
    })
  }

  test('none runs orchestrations only', async (t) => {
    const world = await liveWorld(t)
    await world.start({ activities: where, orchestrations: { main }, options: { workerNodeId: 'mine', workerTagFilter: 'none' } })
    await world.client.startOrchestration('a', 'main', null)
    await until(async () => (await world.client.getQueueDepths()).workerQueue === 1)
    await world.start({ activities: where, options: { workerNodeId: 'other', orchestrationConcurrency: 0 } })
    assert.equal(outputOf(await world.end('a')), 'other')
  })

  test('a tagged activity that nobody serves can be raced against a timer', async (t) => {
    const app = await liveApp(t, {
      activities: where,
      *main(ctx) {
        const { index } = yield ctx.race(ctx.scheduleActivity('where').withTag('nobody'), ctx.scheduleTimer(100))
        return index
      },
    })
    assert.equal(outputOf(await app.run('a')), 1)
  })

  test('a tag over 256 bytes is refused', async (t) => {
    const app = await liveApp(t, {
      *main(ctx) {
        yield ctx.scheduleActivity('where').withTag('x'.repeat(257))
      },
    })
    assert.match((await app.run('a')).error, /tag is 257 bytes long/)
  })
})

describe('sessions', () => {
  test('all activities of one session run on one node; others may run anywhere', async (t) => {
    const world = await liveWorld(t)
    const orchestrations = {
      *main(ctx, session) {
        const nodes = new Set()
        for (let i = 0; i < 4; i++) {
          const [worker, , sessionId] = yield ctx.scheduleActivityOnSession('where', i, session)
          if (sessionId !== session) throw new Error(`session ${sessionId}`)
          nodes.add(worker)
        }
        return [...nodes]
      },
    }
    for (const workerNodeId of ['one', 'two']) {
      await world.start({ activities: where, orchestrations, options: { workerNodeId, maxSessionsPerRuntime: 5, sessionIdleTimeoutMs: 60_000 } })
    }
    const ids = ['a', 'b', 'c', 'd']
    for (const id of ids) await world.client.startOrchestration(id, 'main', `session-${id}`)
    for (const id of ids) assert.equal(outputOf(await world.end(id)).length, 1)
  })
})
