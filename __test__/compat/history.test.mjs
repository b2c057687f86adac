// Table "History events as JavaScript sees them": the kinds, their data as JSON text, ids and links.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { liveApp, until } from '../support/live.mjs'

/** The events of an execution with their data parsed. */
async function historyOf(app, id, execution = 1) {
  const events = await app.client.readExecutionHistory(id, execution)
  return events.map((event) => ({ ...event, ...(event.data === undefined ? {} : { data: JSON.parse(event.data) }) }))
}

const fail = async () => {
  throw new Error('failed on purpose')
}

describe('history', () => {
  test('has event ids from 1, times, and links from a completion to what it completes', async (t) => {
    const app = await liveApp(t, {
      activities: { work: async (_ctx, n) => n * 2 },
      *main(ctx, n) {
        return yield ctx.scheduleActivity('work', n)
      },
    })
    await app.run('a', 4)
    const events = await historyOf(app, 'a')
    assert.deepEqual(
      events.map(({ eventId, kind, sourceEventId, data }) => ({ eventId, kind, sourceEventId, data })),
      [
        { eventId: 1, kind: 'OrchestrationStarted', sourceEventId: undefined, data: { name: 'main', version: '1.0.0', input: 4 } },
        { eventId: 2, kind: 'ActivityScheduled', sourceEventId: undefined, data: { name: 'work', input: 4 } },
        { eventId: 3, kind: 'ActivityCompleted', sourceEventId: 2, data: 8 },
        { eventId: 4, kind: 'OrchestrationCompleted', sourceEventId: undefined, data: 8 },
      ],
    )
    for (const { timestampMs } of events) assert.ok(Math.abs(timestampMs - Date.now()) < 3_600_000)
  })

  test('ActivityFailed, SubOrchestrationFailed and OrchestrationFailed hold structured errors with the message', async (t) => {
    const app = await liveApp(t, {
      activities: { fail },
      orchestrations: { child: fail },
      *main(ctx) {
        yield ctx.all([ctx.scheduleActivity('fail'), ctx.scheduleSubOrchestration('child')])
        throw new Error('so did I')
      },
    })
    await app.run('a')
    const events = await historyOf(app, 'a')
    for (const [kind, text] of [['ActivityFailed', /failed on purpose/], ['SubOrchestrationFailed', /failed on purpose/], ['OrchestrationFailed', /so did I/]]) {
      const event = events.find((each) => each.kind === kind)
      assert.equal(typeof event.data, 'object')
      assert.match(JSON.stringify(event.data), text)
    }
  })

  test('TimerCreated and TimerFired hold the same fireAtMs', async (t) => {
    const app = await liveApp(t, {
      *main(ctx) {
        yield ctx.scheduleTimer(20)
      },
    })
    await app.run('a')
    const events = await historyOf(app, 'a')
    const created = events.find(({ kind }) => kind === 'TimerCreated')
    const fired = events.find(({ kind }) => kind === 'TimerFired')
    assert.deepEqual(Object.keys(created.data), ['fireAtMs'])
    assert.deepEqual(fired.data, created.data)
    assert.equal(fired.sourceEventId, created.eventId)
    assert.ok(created.data.fireAtMs >= events[0].timestampMs + 20)
  })

  test('events and queues hold name, and name with data', async (t) => {
    const app = await liveApp(t, {
      *main(ctx) {
        yield ctx.waitForEvent('e')
        yield ctx.dequeueEvent('q')
      },
    })
    await app.client.startOrchestration('a', 'main')
    await app.client.raiseEvent('a', 'e', { x: 1 })
    await app.client.enqueueEvent('a', 'q', 'text')
    await app.end('a')
    const events = await historyOf(app, 'a')
    const of = (kind) => events.find((each) => each.kind === kind).data
    assert.deepEqual(of('ExternalSubscribed'), { name: 'e' })
    assert.deepEqual(of('ExternalEvent'), { name: 'e', data: { x: 1 } })
    assert.deepEqual(of('QueueSubscribed'), { name: 'q' })
    assert.deepEqual(of('QueueEventDelivered'), { name: 'q', data: 'text' })
  })

  test('SubOrchestrationScheduled holds name, instance and input; its completion the result', async (t) => {
    const app = await liveApp(t, {
      orchestrations: { child: async (_ctx, input) => ({ got: input }) },
      *main(ctx) {
        yield ctx.scheduleSubOrchestrationWithId('child', 'my-child', [1])
      },
    })
    await app.run('a')
    const events = await historyOf(app, 'a')
    const scheduled = events.find(({ kind }) => kind === 'SubOrchestrationScheduled')
    assert.deepEqual(scheduled.data, { name: 'child', instance: 'my-child', input: [1] })
    const completed = events.find(({ kind }) => kind === 'SubOrchestrationCompleted')
    assert.deepEqual([completed.data, completed.sourceEventId], [{ got: [1] }, scheduled.eventId])
  })

  test('the other kinds have no data', async (t) => {
    const app = await liveApp(t, {
      orchestrations: { other: async () => null },
      *main(ctx, n) {
        if (n === 0) {
          ctx.setCustomStatus('busy')
          ctx.setValue('k', 'v')
          ctx.clearValue('k')
          ctx.clearAllValues()
          yield ctx.startOrchestration('other', 'detached')
          yield ctx.continueAsNew(1)
        }
        yield ctx.waitForEvent('never')
      },
    })
    await app.client.startOrchestration('a', 'main', 0)
    await until(async () => (await app.client.listExecutions('a')).length === 2)
    await until(async () => (await app.kinds('a', 2)).includes('ExternalSubscribed'))
    await app.client.cancelInstance('a', 'enough')
    await app.end('a')
    const events = [...(await app.client.readExecutionHistory('a', 1)), ...(await app.client.readExecutionHistory('a', 2))]
    const kinds = [
      'CustomStatusUpdated', 'KeyValueSet', 'KeyValueCleared', 'KeyValuesCleared', 'OrchestrationChained',
      'OrchestrationContinuedAsNew', 'OrchestrationCancelRequested',
    ]
    for (const kind of kinds) {
      const found = events.filter((event) => event.kind === kind)
      assert.equal(found.length, 1, kind)
      assert.equal('data' in found[0], false, kind)
    }
  })

  test('a race leaves its marks: what lost was asked to stop', async (t) => {
    const app = await liveApp(t, {
      activities: { slow: async (ctx) => await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve)) },
      orchestrations: { child: async (ctx) => await ctx.waitForEvent('never') },
      *main(ctx) {
        yield ctx.race(ctx.scheduleTimer(1), ctx.scheduleActivity('slow'))
        yield ctx.race(ctx.scheduleTimer(1), ctx.scheduleSubOrchestration('child'))
        yield ctx.race(ctx.scheduleTimer(1), ctx.waitForEvent('e'))
        yield ctx.race(ctx.scheduleTimer(1), ctx.dequeueEvent('q'))
      },
    })
    await app.run('a')
    const events = await historyOf(app, 'a')
    for (const [kind, source] of [
      ['ActivityCancelRequested', 'ActivityScheduled'],
      ['SubOrchestrationCancelRequested', 'SubOrchestrationScheduled'],
      ['ExternalSubscribedCancelled', 'ExternalSubscribed'],
      ['QueueSubscriptionCancelled', 'QueueSubscribed'],
    ]) {
      const mark = events.find((event) => event.kind === kind)
      assert.ok(mark, kind)
      assert.equal(mark.sourceEventId, events.find((event) => event.kind === source).eventId)
    }
    assert.equal(typeof events.find(({ kind }) => kind === 'QueueSubscriptionCancelled').data.reason, 'string')
  })

  test('each execution has its own, with the input of the next one in its info', async (t) => {
    const app = await liveApp(t, {
      *main(ctx, n) {
        if (n < 1) yield ctx.continueAsNew(n + 1)
        return 'end'
      },
    })
    await app.run('a', 0)
    assert.deepEqual(await app.kinds('a', 1), ['OrchestrationStarted', 'OrchestrationContinuedAsNew'])
    assert.deepEqual((await historyOf(app, 'a', 2))[0].data, { name: 'main', version: '1.0.0', input: 1 })
    assert.equal((await app.client.getExecutionInfo('a', 1)).status, 'ContinuedAsNew')
  })
})
