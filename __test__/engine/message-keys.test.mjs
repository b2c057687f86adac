// Keys of messages: sent twice, delivered once.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { liveApp, outputOf } from '../support/live.mjs'

test('a message with the same key is delivered once, and every call for it resolves', async (t) => {
  const app = await liveApp(t, {
    async main(ctx) {
      const got = []
      for (let n = 0; n < 3; n += 1) got.push(await ctx.dequeueEvent('orders'))
      return got
    },
  })
  await app.client.startOrchestration('one', 'main')
  for (const [order, key] of [['a', 'k1'], ['a', 'k1'], ['b', 'k2'], ['a', 'k1']]) {
    assert.deepEqual(await app.client.enqueueEvent('one', 'orders', order, { dedupKey: key }), { accepted: true })
  }
  await app.client.enqueueEvent('one', 'orders', 'c', { idempotencyKey: 'k3' })
  assert.deepEqual(outputOf(await app.end('one')), ['a', 'b', 'c'])
  assert.deepEqual(await app.client.enqueueEvent('one', 'orders', 'c', { dedupKey: 'k3' }), { accepted: true })
})

test('a bad key or option is refused', async (t) => {
  const { client } = await liveApp(t, { main: async () => null })
  const refused = (options, text) => assert.rejects(client.raiseEvent('one', 'go', 1, options), (error) => error.code === 'INVALID_ARGUMENT' && text.test(error.message))
  await refused({ dedupKey: '' }, /dedupKey.*1 to 256 bytes/)
  await refused({ dedupKey: 'x'.repeat(257) }, /dedupKey/)
  await refused({ dedup: 'x' }, /unknown option 'dedup'/)
})
