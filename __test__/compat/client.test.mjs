// Table "Client": one test for each row, in its order.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { liveApp, liveWorld, outputOf, until } from '../support/live.mjs'

const echo = async (_ctx, input) => input
const waiting = {
  async main(ctx) {
    return await ctx.waitForEvent('go')
  },
}

describe('startOrchestration', () => {
  test('resolves when stored, before anything runs, and is NotFound until the first turn', async (t) => {
    const world = await liveWorld(t)
    await world.client.startOrchestration('a', 'main', 1)
    assert.deepEqual(await world.client.getStatus('a'), { status: 'NotFound', customStatusVersion: 0, isPending: true })
    await world.start({ orchestrations: { main: echo } })
    assert.equal(outputOf(await world.end('a')), 1)
  })

  test('of an id that runs or has ended is accepted and changes nothing', async (t) => {
    const app = await liveApp(t, { ...waiting, orchestrations: { other: echo } })
    await app.client.startOrchestration('a', 'main')
    await app.client.startOrchestration('a', 'main')
    await app.client.startOrchestration('a', 'other', 5)
    await app.client.raiseEvent('a', 'go', 'went')
    assert.equal(outputOf(await app.end('a')), 'went')
    await app.client.startOrchestration('a', 'main')
    assert.equal((await app.client.getStatus('a')).status, 'Completed')
    assert.deepEqual(await app.client.listExecutions('a'), [1])
  })

  test('refuses reserved ids with the documented text', async (t) => {
    const { client } = await liveWorld(t)
    for (const id of ['sub::1', 'parent::sub::2']) {
      await assert.rejects(client.startOrchestration(id, 'main'), {
        message: `Invalid input: instance id '${id}' uses the reserved sub-orchestration marker 'sub::'`,
      })
    }
  })

  test('startOrchestrationVersioned takes the version last and runs exactly that one', async (t) => {
    const world = await liveWorld(t)
    const { Runtime } = await import('../../index.mjs')
    const runtime = new Runtime(world.provider)
    runtime.registerOrchestrationVersioned('main', '1.0.0', async (ctx, n) => [ctx.orchestrationVersion, n])
    runtime.registerOrchestrationVersioned('main', '2.0.0', async (ctx, n) => [ctx.orchestrationVersion, n])
    await runtime.start()
    t.after(() => runtime.shutdown(0))
    await world.client.startOrchestrationVersioned('old', 'main', 7, '1.0.0')
    await world.client.startOrchestration('new', 'main', 8)
    assert.deepEqual(outputOf(await world.end('old')), ['1.0.0', 7])
    assert.deepEqual(outputOf(await world.end('new')), ['2.0.0', 8])
  })

  test('with swapped arguments says so where that can be seen', async (t) => {
    const { client } = await liveWorld(t)
    await assert.rejects(client.startOrchestrationVersioned('a', 'main', '1.0.0', { n: 1 }), /were input and version swapped/)
    const { defineOrchestration } = await import('../../index.mjs')
    await assert.rejects(client.startOrchestration(defineOrchestration('main', echo), 'a'), /the order is \(instanceId, orchestration, input\)/)
  })
})

describe('getStatus', () => {
  test('is NotFound, Running, Completed or Failed, with what belongs to each and nothing else', async (t) => {
    const app = await liveApp(t, {
      ...waiting,
      orchestrations: {
        async failing() {
          throw new Error('broken on purpose')
        },
      },
    })
    assert.deepEqual(await app.client.getStatus('nobody'), { status: 'NotFound', customStatusVersion: 0 })
    await app.client.startOrchestration('a', 'main')
    await until(async () => (await app.client.getStatus('a')).status === 'Running')
    assert.deepEqual(await app.client.getStatus('a'), { status: 'Running', customStatusVersion: 0 })
    await app.client.raiseEvent('a', 'go', { x: 1 })
    await app.end('a')
    assert.deepEqual(await app.client.getStatus('a'), { status: 'Completed', output: '{"x":1}', customStatusVersion: 0 })
    await app.client.startOrchestration('f', 'failing')
    await app.end('f')
    const { error, ...rest } = await app.client.getStatus('f')
    assert.deepEqual(rest, { status: 'Failed', customStatusVersion: 0 })
    assert.match(error, /broken on purpose\n\s+at /)
    assert.deepEqual(await app.client.getOrchestrationStatus('f'), await app.client.getStatus('f'))
  })

  test('of a cancelled instance is Failed with canceled and the reason', async (t) => {
    const app = await liveApp(t, waiting)
    for (const [id, reason] of [['a', 'user went away'], ['b', undefined]]) {
      await app.client.startOrchestration(id, 'main')
      await app.client.cancelInstance(id, reason)
      const { status, error } = await app.end(id)
      assert.deepEqual([status, error], ['Failed', reason === undefined ? 'canceled' : `canceled: ${reason}`])
    }
  })
})

describe('waitForOrchestration', () => {
  test('gives the parsed output, and does not reject for a failed instance', async (t) => {
    const app = await liveApp(t, {
      main: echo,
      orchestrations: {
        failing: async () => {
          throw new Error('no')
        },
      },
    })
    assert.deepEqual(await app.run('a', { n: 1 }), { status: 'Completed', output: { n: 1 }, customStatusVersion: 0 })
    await app.client.startOrchestration('f', 'failing')
    const failed = await app.client.waitForOrchestration('f')
    assert.equal(failed.status, 'Failed')
    assert.match(failed.error, /no/)
  })

  test('rejects when the time is over, and says what it waited for', async (t) => {
    const { client } = await liveWorld(t)
    await assert.rejects(client.waitForOrchestration('never-started', 50), {
      name: 'TimeoutError',
      message: "Operation timed out: instance 'never-started' did not end within 50 ms",
    })
  })

  test('follows continue-as-new', async (t) => {
    const app = await liveApp(t, {
      *main(ctx, n) {
        if (n < 3) yield ctx.continueAsNew(n + 1)
        return `ended with ${n}`
      },
    })
    assert.equal(outputOf(await app.run('a', 0)), 'ended with 3')
  })

  test('typed resolves with the output and throws the error of a failed instance', async (t) => {
    const app = await liveApp(t, {
      main: echo,
      orchestrations: {
        failing: async () => {
          throw new Error('typed failure')
        },
      },
    })
    await app.client.startOrchestration('a', 'main', [1, 2])
    assert.deepEqual(await app.client.waitForOrchestrationTyped('a', 10_000), [1, 2])
    await app.client.startOrchestration('f', 'failing')
    await assert.rejects(app.client.waitForOrchestrationTyped('f', 10_000), /typed failure/)
  })
})

describe('cancelInstance', () => {
  test('of an unknown or ended instance has no effect and no error', async (t) => {
    const app = await liveApp(t, { main: echo })
    await app.client.cancelInstance('nobody', 'why not')
    await app.run('a', 1)
    await app.client.cancelInstance('a', 'too late')
    await app.client.cancelOrchestration('a')
    assert.equal((await app.client.getStatus('a')).status, 'Completed')
  })
})

describe('raiseEvent and enqueueEvent', () => {
  test('without data give null', async (t) => {
    const app = await liveApp(t, {
      async main(ctx) {
        return [await ctx.waitForEvent('e'), await ctx.dequeueEvent('q')]
      },
    })
    await app.client.startOrchestration('a', 'main')
    await app.client.raiseEvent('a', 'e')
    await app.client.enqueueEvent('a', 'q')
    assert.deepEqual(outputOf(await app.end('a')), [null, null])
  })

  test('to an unknown instance are accepted', async (t) => {
    const { client } = await liveWorld(t)
    await client.raiseEvent('nobody', 'e', 1)
    await client.enqueueEvent('nobody', 'q', 1)
    assert.equal((await client.getStatus('nobody')).status, 'NotFound')
  })
})

describe('values', () => {
  const writing = {
    async main(ctx) {
      ctx.setValue('a', 'one')
      ctx.setValue('b', 2)
      await ctx.waitForEvent('more')
      ctx.clearValue('a')
      return 'done'
    },
  }

  test('getValue gives a string or null, getKvAllValues all of them', async (t) => {
    const app = await liveApp(t, writing)
    await app.client.startOrchestration('i', 'main')
    assert.equal(await app.client.waitForValue('i', 'b', 10_000), '2')
    assert.equal(await app.client.getValue('i', 'a'), 'one')
    assert.equal(await app.client.getValue('i', 'z'), null)
    assert.equal(await app.client.getValue('nobody', 'a'), null)
    assert.deepEqual(await app.client.getKvAllValues('i'), { a: 'one', b: '2' })
    await app.client.raiseEvent('i', 'more')
    await app.end('i')
    assert.deepEqual(await app.client.getKvAllValues('i'), { b: '2' })
    assert.deepEqual(await app.client.getKvAllValues('nobody'), {})
  })

  test('waitForValue that runs out of time has the documented text', async (t) => {
    const { client } = await liveWorld(t)
    await assert.rejects(client.waitForValue('nobody', 'k', 50), /^[A-Za-z]*Error: Timed out waiting for value 'k' on instance 'nobody'/)
  })
})

describe('waitForStatusChange', () => {
  const stages = {
    async main(ctx) {
      ctx.setCustomStatus('one')
      await ctx.waitForEvent('next')
      ctx.setCustomStatus('two')
      await ctx.waitForEvent('next')
      return 'over'
    },
  }

  test('gives each status once its version is higher, and the end', async (t) => {
    const app = await liveApp(t, stages)
    await app.client.startOrchestration('a', 'main')
    const one = await app.client.waitForStatusChange('a', 0, 10, 10_000)
    assert.deepEqual([one.status, one.customStatus, one.customStatusVersion], ['Running', 'one', 1])
    await app.client.raiseEvent('a', 'next')
    const two = await app.client.waitForStatusChange('a', one.customStatusVersion, 10, 10_000)
    assert.deepEqual([two.customStatus, two.customStatusVersion], ['two', 2])
    await app.client.raiseEvent('a', 'next')
    const end = await app.client.waitForStatusChange('a', two.customStatusVersion, 10, 10_000)
    assert.deepEqual([end.status, end.output, end.customStatusVersion], ['Completed', 'over', 2])
  })

  test('rejects when the time is over', async (t) => {
    const app = await liveApp(t, stages)
    await app.client.startOrchestration('a', 'main')
    await app.client.waitForStatusChange('a', 0)
    await assert.rejects(app.client.waitForStatusChange('a', 1, 10, 50), /Operation timed out/)
  })
})
