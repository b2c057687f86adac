// Restart in the middle of each feature: one runtime begins, stops without any patience, and another one ends it with the
// same outcome as an undisturbed run.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { liveWorld, outputOf, until } from '../support/live.mjs'

const echo = async (_ctx, input) => input
const orchestrations = {
  child: async (ctx, n) => [n, await ctx.waitForEvent('child go')],
  plain: async (_ctx, n) => n,
}

/** Each: the code, what is sent before the restart, how it is seen to stand in the middle, what is sent after it, the end. */
const features = {
  'an event': {
    *main(ctx) {
      return [yield ctx.scheduleActivity('echo', 1), yield ctx.waitForEvent('go'), yield ctx.newGuid()].slice(0, 2)
    },
    middle: 'ExternalSubscribed',
    after: (client) => client.raiseEvent('i', 'go', 'went'),
    output: [1, 'went'],
  },
  'a queue half read': {
    *main(ctx) {
      const read = []
      for (let i = 0; i < 4; i++) read.push(yield ctx.dequeueEvent('q'))
      return read
    },
    before: async (client) => {
      for (const n of [1, 2]) await client.enqueueEvent('i', 'q', n)
    },
    middle: 'QueueEventDelivered',
    after: async (client) => {
      for (const n of [3, 4]) await client.enqueueEvent('i', 'q', n)
    },
    output: [1, 2, 3, 4],
  },
  'a child': {
    *main(ctx) {
      return yield ctx.scheduleSubOrchestrationWithId('child', 'kid', 7)
    },
    middle: 'SubOrchestrationScheduled',
    after: (client) => client.raiseEvent('kid', 'child go', 'ok'),
    output: [7, 'ok'],
  },
  values: {
    *main(ctx) {
      ctx.setValue('n', '1')
      yield ctx.waitForEvent('go')
      ctx.setValue('n', String(Number(ctx.getValue('n')) + 1))
      return [ctx.getValue('n'), ctx.getKvLength()]
    },
    middle: 'ExternalSubscribed',
    after: (client) => client.raiseEvent('i', 'go'),
    output: ['2', 1],
  },
  'custom status': {
    *main(ctx) {
      ctx.setCustomStatus('half')
      yield ctx.waitForEvent('go')
      return ctx.getCustomStatus()
    },
    middle: 'ExternalSubscribed',
    after: (client) => client.raiseEvent('i', 'go'),
    output: 'half',
  },
  'a race with a timer': {
    *main(ctx) {
      return yield ctx.race(ctx.waitForEvent('go'), ctx.scheduleTimer(500))
    },
    middle: 'TimerCreated',
    output: { index: 1, value: null },
  },
  'an all half done': {
    *main(ctx) {
      return yield ctx.all([ctx.scheduleActivity('echo', 'a'), ctx.waitForEvent('go'), ctx.scheduleTimer(10)])
    },
    middle: 'ActivityCompleted',
    after: (client) => client.raiseEvent('i', 'go', 'b'),
    output: [{ ok: 'a' }, { ok: 'b' }, { ok: null }],
  },
  'cleaning up after a cancel': {
    *main(ctx) {
      try {
        yield ctx.waitForEvent('never')
      } finally {
        ctx.setValue('cleaned', String(yield ctx.scheduleActivity('echo', 'yes')))
      }
    },
    middle: 'ExternalSubscribed',
    after: (client) => client.cancelInstance('i', 'restart'),
    error: 'canceled: restart',
  },
  'continue-as-new': {
    *main(ctx, n) {
      const message = yield ctx.waitForEvent('go')
      if (n === 0) yield ctx.continueAsNew(1)
      return [n, message]
    },
    before: (client) => client.raiseEvent('i', 'go', 'first'),
    middle: async (world) => (await world.client.listExecutions('i')).length === 2,
    after: (client) => client.raiseEvent('i', 'go', 'second'),
    output: [1, 'second'],
  },
  'an activity of a session': {
    *main(ctx) {
      const first = yield ctx.scheduleActivityOnSession('echo', 1, 's')
      yield ctx.waitForEvent('go')
      return [first, yield ctx.scheduleActivityOnSession('echo', 2, 's')]
    },
    middle: 'ExternalSubscribed',
    after: (client) => client.raiseEvent('i', 'go'),
    output: [1, 2],
  },
}

describe('a restart in the middle of', () => {
  for (const [name, feature] of Object.entries(features)) {
    test(`${name} changes nothing`, async (t) => {
      const world = await liveWorld(t)
      const handlers = (workerNodeId) => ({ activities: { echo }, orchestrations: { ...orchestrations, main: feature.main }, options: { workerNodeId } })
      const first = await world.start(handlers('first'))
      await world.client.startOrchestration('i', 'main', 0)
      await feature.before?.(world.client)
      const { middle } = feature
      await until(async () => (typeof middle === 'string' ? (await world.kinds('i')).includes(middle) : await middle(world)))
      await first.shutdown(0)
      await feature.after?.(world.client)
      await world.start(handlers('second'))
      const end = await world.end('i')
      if (feature.error === undefined) assert.deepEqual(outputOf(end), feature.output)
      else assert.deepEqual([end.status, end.error], ['Failed', feature.error])
      if (name.startsWith('cleaning')) assert.equal(await world.client.getValue('i', 'cleaned'), 'yes')
    })
  }
})
