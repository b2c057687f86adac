// Table "ActivityContext": its fields and methods, and what its errors become.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { gate, liveApp, outputOf } from '../support/live.mjs'

test('the fields say who asked and who runs it', async (t) => {
  const app = await liveApp(t, {
    options: { workerNodeId: 'node-7' },
    activities: {
      who: async (ctx) => [ctx.instanceId, ctx.executionId, ctx.orchestrationName, ctx.orchestrationVersion, ctx.activityName, ctx.workerId, ctx.sessionId, ctx.tag()],
    },
    main: async (ctx) => await ctx.scheduleActivity('who'),
  })
  assert.deepEqual(outputOf(await app.run('a')), ['a', 1, 'main', '1.0.0', 'who', 'node-7', null, null])
})

test('tag is the tag it was given', async (t) => {
  const app = await liveApp(t, {
    options: { workerTagFilter: { tags: ['gpu'] } },
    activities: { tagged: async (ctx) => ctx.tag() },
    *main(ctx) {
      return yield ctx.scheduleActivity('tagged').withTag('gpu')
    },
  })
  assert.equal(outputOf(await app.run('a')), 'gpu')
})

test('getClient gives a client while the activity runs, and null after its end', async (t) => {
  let kept
  const app = await liveApp(t, {
    activities: {
      async talk(ctx) {
        kept = ctx
        await ctx.getClient().raiseEvent(ctx.instanceId, 'hello', 'from the activity')
        await ctx.getClient().startOrchestration('other', 'other', 5)
        return (await ctx.getClient().getStatus(ctx.instanceId)).status
      },
    },
    orchestrations: { other: async (_ctx, n) => n },
    *main(ctx) {
      return [yield ctx.scheduleActivity('talk'), yield ctx.waitForEvent('hello')]
    },
  })
  assert.deepEqual(outputOf(await app.run('a')), ['Running', 'from the activity'])
  assert.equal(outputOf(await app.end('other')), 5)
  assert.equal(kept.getClient(), null)
})

test('isCancelled becomes true when the activity has lost its race', async (t) => {
  const seen = gate()
  const app = await liveApp(t, {
    options: { workerLockTimeoutMs: 2000 },
    activities: {
      async poll(ctx) {
        while (!ctx.isCancelled()) await new Promise((resolve) => setTimeout(resolve, 20))
        seen.open(true)
        return 'late'
      },
    },
    *main(ctx) {
      const { index } = yield ctx.race(ctx.scheduleActivity('poll'), ctx.scheduleTimer(100))
      return index
    },
  })
  assert.equal(outputOf(await app.run('a')), 1)
  assert.equal(await seen.promise, true)
})

for (const [what, fn, text] of [
  ['a rejection', async () => { throw new Error('rejected text') }, 'rejected text'],
  ['a throw of a plain function', () => { throw new Error('thrown text') }, 'thrown text'],
  ['a thrown string', () => { throw 'just a string' }, 'just a string'],
]) {
  test(`${what} reaches the orchestration with its text`, async (t) => {
    const app = await liveApp(t, {
      activities: { fail: fn },
      orchestrations: { uncaught: async (ctx) => await ctx.scheduleActivity('fail') },
      *main(ctx) {
        try {
          yield ctx.scheduleActivity('fail')
        } catch (error) {
          return error.message
        }
      },
    })
    assert.ok(outputOf(await app.run('a')).includes(text))
    await app.client.startOrchestration('u', 'uncaught')
    const { status, error } = await app.end('u')
    assert.equal(status, 'Failed')
    assert.ok(error.includes(text))
  })
}

test('no return is null', async (t) => {
  const app = await liveApp(t, { activities: { nothing: () => {} }, main: async (ctx) => [await ctx.scheduleActivity('nothing')] })
  assert.deepEqual(outputOf(await app.run('a')), [null])
})
