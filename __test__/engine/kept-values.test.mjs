// Values that an instance keeps: set and read back, limits, continue-as-new, replay on another node, clients, other instances.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { MAX_KV_KEYS, MAX_KV_VALUE_BYTES } from '../../index.mjs'
import { liveApp, liveWorld, outputOf, until } from '../support/live.mjs'

test('values are read back at once, seen by clients after the turn, counted, and gone when cleared', async (t) => {
  const app = await liveApp(t, {
    main: async (ctx) => {
      ctx.setValue('b', 'two')
      ctx.setValue('a', 1)
      ctx.setValue('gone', 'x')
      ctx.clearValue('gone')
      ctx.clearValue('never there')
      const seen = [ctx.getValue('a'), ctx.getValue('gone'), ctx.getKvAllValues(), ctx.getKvAllKeys(), ctx.getKvLength()]
      await ctx.waitForEvent('go')
      ctx.clearAllValues()
      ctx.setValue('last', '{"raw":true}')
      return [...seen, ctx.getKvAllKeys()]
    },
  })
  await app.client.startOrchestration('one', 'main')
  assert.equal(await app.client.waitForValue('one', 'b'), 'two')
  assert.deepEqual(await app.client.getKvAllValues('one'), { a: '1', b: 'two' })
  const stats = await app.client.getOrchestrationStats('one')
  assert.deepEqual([stats.kvUserKeyCount, stats.kvTotalValueBytes], [2, 4])
  await app.client.raiseEvent('one', 'go')
  const end = outputOf(await app.end('one'))
  assert.deepEqual(end, ['1', null, { a: '1', b: 'two' }, ['a', 'b'], 2, ['last']])
  assert.deepEqual(await app.client.getKvAllValues('one'), { last: '{"raw":true}' })
  assert.equal(await app.client.getValue('one', 'a'), null)
  const kinds = await app.kinds('one')
  assert.deepEqual(kinds.filter((kind) => kind.startsWith('KeyValue')), ['KeyValueSet', 'KeyValueSet', 'KeyValueSet', 'KeyValueCleared', 'KeyValueCleared', 'KeyValuesCleared', 'KeyValueSet'])
  await app.client.deleteInstance('one')
  assert.deepEqual(await app.client.getKvAllValues('one'), {})
  assert.deepEqual(await app.sql('select * from kv'), [])
})

test('a call over a limit throws, changes nothing and can be caught; uncaught it fails the instance', async (t) => {
  const app = await liveApp(t, {
    main: async (ctx, input) => {
      const refusals = []
      const attempt = (act) => {
        try {
          act()
        } catch (error) {
          refusals.push([error.code, error.message])
        }
      }
      for (let i = 0; i < MAX_KV_KEYS; i++) ctx.setValue(`k${i}`, 'v')
      await ctx.scheduleTimer(1)
      if (input === 'uncaught') ctx.setValue('one more', 'v')
      attempt(() => ctx.setValue('one more', 'v'))
      attempt(() => ctx.setValue('k0', 'é'.repeat(MAX_KV_VALUE_BYTES / 2) + 'x'))
      attempt(() => ctx.setValue('k0', 'a\0b'))
      attempt(() => ctx.setValue('', 'v'))
      ctx.setValue('k0', 'é'.repeat(MAX_KV_VALUE_BYTES / 2))
      return [refusals, ctx.getKvLength()]
    },
  })
  const [refusals, length] = outputOf(await app.run('one'))
  assert.deepEqual(refusals, [
    ['LIMIT_EXCEEDED', 'KV key count (151) exceeds limit (150)'],
    ['LIMIT_EXCEEDED', "KV value of key 'k0' has 65537 bytes, which exceeds limit (65536)"],
    ['INVALID_ARGUMENT', "KV value of key 'k0' must be well-formed Unicode without NUL"],
    ['INVALID_ARGUMENT', 'key must not be empty'],
  ])
  assert.equal(length, MAX_KV_KEYS)
  assert.equal((await app.client.getValue('one', 'k0')).length, MAX_KV_VALUE_BYTES / 2)
  const failed = await app.run('two', 'uncaught')
  assert.match(failed.error, /KV key count \(151\) exceeds limit \(150\)/)
  assert.equal(Object.keys(await app.client.getKvAllValues('two')).length, MAX_KV_KEYS)
})

test('read, change, write is exact over replays on other nodes and over continue-as-new', async (t) => {
  const world = await liveWorld(t)
  const main = async (ctx, round) => {
    for (let i = 0; i < 5; i++) {
      ctx.setValue('count', Number(ctx.getValue('count') ?? 0) + 1)
      await ctx.scheduleTimer(1)
    }
    if (round < 3) return await ctx.continueAsNew(round + 1)
    return ctx.getValue('count')
  }
  // Without kept frames each turn replays from the first event.
  for (let i = 0; i < 2; i++) await world.start({ orchestrations: { main }, options: { stickyCacheSize: 0 } })
  assert.equal(outputOf(await world.run('one', 1)), '15')
  assert.equal(await world.client.getValue('one', 'count'), '15')
  await world.client.pruneExecutions('one')
  assert.equal(await world.client.getValue('one', 'count'), '15')
})

test('what was set before a time goes by recorded times, also in another execution', async (t) => {
  const world = await liveWorld(t)
  const main = async (ctx, cutoff) => {
    if (cutoff === null) {
      ctx.setValue('old', 'x')
      await ctx.scheduleTimer(20)
      ctx.setValue('new', 'x')
      return await ctx.continueAsNew(ctx.utcNow())
    }
    ctx.setValue('newest', 'x')
    const removed = ctx.pruneKvValuesUpdatedBefore(cutoff)
    await ctx.scheduleTimer(1)
    return [removed, ctx.getKvAllKeys(), ctx.pruneKvValuesUpdatedBefore(Infinity)]
  }
  await world.start({ orchestrations: { main }, options: { stickyCacheSize: 0 } })
  assert.deepEqual(outputOf(await world.run('one')), [1, ['new', 'newest'], 2])
  assert.deepEqual(await world.client.getKvAllValues('one'), {})
})

test('a value of another instance is read by the engine, recorded, and null when missing', async (t) => {
  const world = await liveWorld(t)
  const main = async (ctx) => {
    ctx.setValue('mine', 'own "text"\n')
    const parts = await ctx.all([ctx.getValueFromInstance('other', 'shared'), ctx.getValueFromInstance('other', 'none'), ctx.getValueFromInstance('nobody', 'x'), ctx.getValueFromInstance('one', 'mine')])
    const first = await ctx.race(ctx.getValueFromInstance('other', 'shared'), ctx.scheduleTimer(60_000))
    return [parts.map(({ ok }) => ok), first.value]
  }
  const other = async (ctx) => {
    ctx.setValue('shared', 'from other')
    await ctx.waitForEvent('never')
  }
  // No activity is registered anywhere: nothing but the engine can answer.
  await world.start({ orchestrations: { main, other }, options: { stickyCacheSize: 0 } })
  await world.client.startOrchestration('other', 'other')
  await world.client.waitForValue('other', 'shared')
  assert.deepEqual(outputOf(await world.run('one')), [['from other', null, null, 'own "text"\n'], 'from other'])
  const scheduled = (await world.data('one', 'ActivityScheduled')).filter(({ name }) => name === '__holdfast:get-value')
  assert.deepEqual(scheduled[0].input, { instance: 'other', key: 'shared' })
  assert.equal((await world.data('one', 'ActivityCompleted')).length, 5)
})

test('waiting for a value that does not come is told so', async (t) => {
  const { client } = await liveWorld(t)
  await assert.rejects(client.waitForValue('nobody', 'k', 20), (error) => error.code === 'TIMEOUT' && error.message === "Timed out waiting for value 'k' on instance 'nobody'")
  assert.equal(await client.getValue('nobody', 'k'), null)
})

test('another order of clears fits, another value or a missing call does not', async (t) => {
  const codes = {
    recorded: (ctx) => (ctx.setValue('x', 1), ctx.clearValue('a'), ctx.clearValue('b')),
    reordered: (ctx) => (ctx.setValue('x', 1), ctx.clearValue('b'), ctx.clearValue('a')),
    changed: (ctx) => (ctx.setValue('x', 2), ctx.clearValue('a'), ctx.clearValue('b')),
    missing: (ctx) => (ctx.setValue('x', 1), ctx.clearValue('a')),
    none: () => undefined,
  }
  for (const [name, second] of Object.entries(codes).slice(1)) {
    const world = await liveWorld(t)
    const main = (act) => async (ctx) => {
      act(ctx)
      await ctx.waitForEvent('go')
      return 'fits'
    }
    const before = await world.start({ orchestrations: { main: main(codes.recorded) } })
    await world.client.startOrchestration('one', 'main')
    await until(async () => (await world.kinds('one')).includes('ExternalSubscribed'), 'the wait')
    await before.shutdown()
    await world.start({ orchestrations: { main: main(second) } })
    await world.client.raiseEvent('one', 'go')
    const end = await world.end('one')
    if (name === 'reordered') assert.equal(outputOf(end), 'fits')
    else assert.match(end.error, /nondeterministic: .*history has (value "x" set to "1"|a clear of value "[ab]")/, name)
  }
})
