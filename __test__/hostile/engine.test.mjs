// Every odd text in every place where the engine takes one, on a real database: it works and comes back the same, or it is
// refused at the call. Nothing else happens to it, and nothing happens to its neighbours.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'

import { liveWorld, until } from '../support/live.mjs'
import { BROKEN_TEXTS, REFUSED_VALUES, TEXTS, VALUES } from './vectors.mjs'

const byJson = (value) => JSON.parse(JSON.stringify(value) ?? 'null')

/** Everything at once: the runtime runs some hundred instances side by side. */
const all = (map, act) => Promise.all([...map].map(([what, value]) => act(value, what)))

describe('odd texts', () => {
  test('as ids, names, messages, keys, status and reasons come back as they were', async (t) => {
    const world = await liveWorld(t)
    const { client } = world
    await world.start({
      activities: { echo: async (ctx, input) => ({ input, id: ctx.instanceId, key: ctx.idempotencyKey }) },
      orchestrations: {
        *main(ctx, text) {
          ctx.setCustomStatus(text)
          ctx.setValue(text, text)
          const event = yield ctx.waitForEvent(text)
          const message = yield ctx.dequeueEvent(text)
          const echo = yield ctx.scheduleActivity('echo', { [text]: text })
          return { event, message, echo, value: ctx.getValue(text) }
        },
        forever: async (ctx, text) => await ctx.waitForEvent(text),
      },
    })
    await all(TEXTS, async (text, what) => {
      const id = `${text}`
      await client.startOrchestration(id, 'main', text)
      await client.raiseEvent(id, text, { [text]: [text] })
      await client.enqueueEvent(id, text, text)
      const { status, output, error } = await world.end(id)
      assert.equal(status, 'Completed', `${what}: ${error}`)
      assert.deepEqual(output.event, { [text]: [text] }, what)
      assert.equal(output.message, text, what)
      assert.deepEqual(output.echo.input, { [text]: text }, what)
      assert.equal(output.echo.id, id, what)
      assert.equal(output.value, text, what)
      assert.equal((await client.getStatus(id)).customStatus, text, what)
      assert.equal(await client.getValue(id, text), text, what)
      assert.deepEqual((await client.getInstanceInfo(id)).instanceId, id, what)
      const reasoned = `${text}/cancelled`
      await client.startOrchestration(reasoned, 'forever', text)
      await client.cancelInstance(reasoned, text)
      const cancelled = await world.end(reasoned)
      assert.equal(cancelled.error, `canceled: ${text}`, what)
    })
    const { length } = await client.listAllInstances()
    assert.equal(length, TEXTS.size * 2)
  })

  test('that no text can hold are refused by name, and nothing is stored', async (t) => {
    const world = await liveWorld(t)
    const { client } = world
    await client.startOrchestration('known', 'main')
    const before = await world.rows()
    const refused = (act, what) => assert.rejects(act, (error) => error.code === 'INVALID_ARGUMENT' && error.retryable === false, what)
    await all(BROKEN_TEXTS, async (text, what) => {
      await refused(() => client.startOrchestration(text, 'main'), what)
      await refused(() => client.startOrchestration('new', text), what)
      await refused(() => client.raiseEvent('known', text), what)
      await refused(() => client.enqueueEvent('known', text), what)
      await refused(() => client.cancelInstance('known', text), what)
      await refused(() => client.getStatus(text), what)
      await refused(() => client.getValue('known', text), what)
      await refused(() => client.deleteInstance(text), what)
    })
    assert.deepEqual(await world.rows(), before)
  })
})

describe('odd values', () => {
  test('go through inputs, activities, events and outputs as JSON has them', async (t) => {
    const world = await liveWorld(t)
    const { client } = world
    await world.start({
      activities: { echo: async (_ctx, value) => value },
      orchestrations: {
        async main(ctx, input) {
          const result = await ctx.scheduleActivity('echo', input)
          const event = await ctx.waitForEvent('value')
          return [input, result, event]
        },
      },
    })
    await all(VALUES, async (value, what) => {
      const expected = byJson(value)
      await client.startOrchestration(what, 'main', value)
      await client.raiseEvent(what, 'value', value)
      const { status, output, error } = await world.end(what)
      assert.equal(status, 'Completed', `${what}: ${error}`)
      assert.deepEqual(output, [expected, expected, expected], what)
    })
    assert.equal({}.polluted, undefined)
  })

  test('that JSON cannot hold end the step that gave them, not the worker', async (t) => {
    const world = await liveWorld(t)
    await world.start({
      activities: { give: async (_ctx, what) => REFUSED_VALUES.get(what)[0] },
      orchestrations: {
        async main(ctx, what) {
          try {
            return await ctx.scheduleActivity('give', what)
          } catch (error) {
            return { code: error.code, message: error.message }
          }
        },
        output: async (_ctx, what) => REFUSED_VALUES.get(what)[0],
      },
    })
    await all(REFUSED_VALUES, async (_value, what) => {
      await world.client.startOrchestration(`activity ${what}`, 'main', what)
      await world.client.startOrchestration(`output ${what}`, 'output', what)
      const { output } = await world.end(`activity ${what}`)
      assert.equal(output.code, 'INVALID_PAYLOAD', `${what}: ${JSON.stringify(output)}`)
      const { status, error } = await world.end(`output ${what}`)
      assert.equal(status, 'Failed', what)
      assert.match(error, /JSON|levels|itself|threw/, what)
    })
    assert.equal(await until(async () => (await world.client.getSystemMetrics()).runningInstances === 0), true)
  })
})
