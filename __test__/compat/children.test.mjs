// Rules "Children, detached starts, continue-as-new" and "Async blocks".
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { liveApp, outputOf, until } from '../support/live.mjs'

const echo = async (_ctx, input) => input

describe('continue-as-new', () => {
  test('carries custom status, its version, values and the parent link', async (t) => {
    const app = await liveApp(t, {
      orchestrations: {
        *child(ctx, n) {
          if (n === 0) {
            ctx.setCustomStatus('kept')
            ctx.setValue('k', 'v')
            yield ctx.continueAsNew(1)
          }
          return [ctx.getCustomStatus(), ctx.getValue('k'), ctx.executionId]
        },
      },
      *main(ctx) {
        return yield ctx.scheduleSubOrchestrationWithId('child', 'kid', 0)
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), ['kept', 'v', 2])
    const status = await app.client.getStatus('kid')
    assert.deepEqual([status.customStatus, status.customStatusVersion], ['kept', 1])
    assert.equal(await app.client.getValue('kid', 'k'), 'v')
    assert.equal((await app.client.getInstanceInfo('kid')).parentInstanceId, 'a')
  })
})

describe('children', () => {
  test('an automatic id begins with that of the parent and is reserved for starts', async (t) => {
    const app = await liveApp(t, {
      orchestrations: { child: async (ctx) => ctx.instanceId },
      *main(ctx) {
        return [yield ctx.scheduleSubOrchestration('child'), yield ctx.scheduleSubOrchestration('child')]
      },
    })
    const ids = outputOf(await app.run('parent'))
    assert.notEqual(ids[0], ids[1])
    for (const id of ids) {
      assert.match(id, /^parent::sub::/)
      await assert.rejects(app.client.startOrchestration(id, 'child'), /reserved sub-orchestration marker/)
    }
  })

  test('an id that is taken gives the parent an error it can catch', async (t) => {
    const app = await liveApp(t, {
      orchestrations: { child: async () => 1, waiter: async (ctx) => await ctx.waitForEvent('never') },
      *main(ctx) {
        const texts = []
        for (const id of ['ended', 'running']) {
          try {
            yield ctx.scheduleSubOrchestrationWithId('child', id)
          } catch (error) {
            texts.push(error.message)
          }
        }
        return texts
      },
    })
    await app.client.startOrchestration('ended', 'child')
    await app.end('ended')
    await app.client.startOrchestration('running', 'waiter')
    const texts = outputOf(await app.run('a'))
    assert.equal(texts.length, 2)
    assert.match(texts[0], /^sub-orchestration instance id 'ended' already exists/)
    assert.match(texts[1], /^sub-orchestration instance id 'running' already exists/)
  })

  test('an explicit id with the reserved marker is an error the parent can catch', async (t) => {
    const app = await liveApp(t, {
      *main(ctx) {
        try {
          yield ctx.scheduleSubOrchestrationWithId('child', 'sub::1')
        } catch (error) {
          return error.message
        }
      },
    })
    assert.match(outputOf(await app.run('a')), /reserved/)
  })

  test('a failed child throws with its text in the parent', async (t) => {
    const app = await liveApp(t, {
      orchestrations: {
        async child() {
          throw new Error('child went wrong')
        },
      },
      *main(ctx) {
        try {
          yield ctx.scheduleSubOrchestration('child')
        } catch (error) {
          return error.message
        }
      },
    })
    assert.match(outputOf(await app.run('a')), /child went wrong/)
  })

  test('that nobody awaits keep running when the parent completes; those of a cancelled parent are cancelled', async (t) => {
    const app = await liveApp(t, {
      orchestrations: { child: async (ctx) => await ctx.waitForEvent('go') },
      *main(ctx, mode) {
        yield ctx.race(ctx.waitForEvent('started'), ctx.all([ctx.scheduleSubOrchestrationWithId('child', `${mode}-child`), ctx.waitForEvent('never')]))
      },
    })
    await app.client.startOrchestration('c', 'main', 'cancelled')
    await until(async () => (await app.client.getStatus('cancelled-child')).status === 'Running')
    await app.client.cancelInstance('c', 'enough')
    const child = await app.end('cancelled-child')
    assert.deepEqual([child.status, child.error.startsWith('canceled: ')], ['Failed', true])
  })

  test('a detached start of an id that exists does nothing', async (t) => {
    const app = await liveApp(t, {
      orchestrations: { side: async (_ctx, n) => n },
      *main(ctx, n) {
        yield ctx.startOrchestration('side', 'one', n)
        return 'ok'
      },
    })
    assert.equal(outputOf(await app.run('a', 1)), 'ok')
    assert.equal(outputOf(await app.end('one')), 1)
    assert.equal(outputOf(await app.run('b', 2)), 'ok')
    assert.equal(outputOf(await app.end('one')), 1)
  })

  test('stand in for blocks of several steps that are joined and raced', async (t) => {
    const app = await liveApp(t, {
      activities: { echo },
      orchestrations: {
        *block(ctx, n) {
          const a = yield ctx.scheduleActivity('echo', n)
          const b = yield ctx.scheduleActivity('echo', a + 1)
          return a + b
        },
      },
      *main(ctx) {
        const joined = yield ctx.all([1, 10].map((n) => ctx.scheduleSubOrchestration('block', n)))
        const raced = yield ctx.race(ctx.scheduleSubOrchestration('block', 100), ctx.scheduleTimer(60_000))
        return [joined.map(({ ok }) => ok), raced]
      },
    })
    assert.deepEqual(outputOf(await app.run('a')), [[3, 21], { index: 0, value: 201 }])
  })

  test('of a name that nobody has wait, and run once somebody has it', async (t) => {
    const app = await liveApp(t, {
      *main(ctx) {
        return yield ctx.scheduleSubOrchestration('later')
      },
    })
    await app.client.startOrchestration('a', 'main')
    await until(async () => (await app.kinds('a')).includes('SubOrchestrationScheduled'))
    await app.start({ orchestrations: { later: async () => 'here now' } })
    assert.equal(outputOf(await app.end('a')), 'here now')
  })
})
