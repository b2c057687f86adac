// Events of a provider, on an addon of the test's own.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { test } from 'node:test'

const require = createRequire(import.meta.url)
const { PostgresProvider } = require('../../index.js')
const { useBinding } = require('../../dist/cjs/native.js')

/** A provider whose addon tells what the test says, and the addon's side of it. */
async function tellingProvider(t) {
  const addon = { bell: undefined, kept: [], taken: 0, tell }
  function tell(...events) {
    addon.kept.push(...events.map((event) => ({ level: 'warn', message: 'text', at: 5, count: 1, ...event })))
    addon.bell?.()
  }
  const native = {
    close: async () => ({}),
    stats: () => '{}',
    listen: (bell) => (addon.bell = bell),
    unlisten: () => (addon.bell = undefined),
    takeEvents: () => {
      addon.taken++
      return JSON.stringify(addon.kept.splice(0))
    },
  }
  useBinding({ JsPostgresProvider: { connect: async () => ({ value: native }) }, JsOptions: { ofPool: (value) => ({ value }) } })
  t.after(() => useBinding(undefined))
  return { provider: await PostgresProvider.connect('postgres://nowhere/d'), addon }
}

test('an event has its common fields, its own, and the time as a date', async (t) => {
  const { provider, addon } = await tellingProvider(t)
  const heard = []
  provider.on('event', (event) => heard.push(event))
  addon.tell({ name: 'lease-lost', instance: 'order-17' })
  const expected = { name: 'lease-lost', level: 'warn', message: 'text', at: new Date(5), count: 1, instance: 'order-17' }
  assert.deepEqual(heard, [expected])
})

test('warnings are the events that somebody may have to act on', async (t) => {
  const { provider, addon } = await tellingProvider(t)
  const heard = []
  provider.on('warning', (event) => heard.push(event.name))
  addon.tell({ name: 'a', level: 'info' }, { name: 'b', level: 'warn' }, { name: 'c', level: 'error' })
  assert.deepEqual(heard, ['b', 'c'])
})

test('a listener that throws or rejects is reported and stops no other', async (t) => {
  const { provider, addon } = await tellingProvider(t)
  const heard = []
  provider.on('event', () => {
    throw new Error('thrown by a listener')
  })
  provider.on('event', async () => {
    throw new Error('rejected by a listener')
  })
  provider.on('event', (event) => heard.push(event.name))
  const warnings = []
  const collect = (warning) => warnings.push(warning)
  process.on('warning', collect)
  t.after(() => process.off('warning', collect))
  addon.tell({ name: 'a' })
  while (warnings.length < 2) await once(process, 'warning')
  assert.deepEqual(heard, ['a'])
  assert.deepEqual(warnings.map((warning) => warning.code), ['HOLDFAST_LISTENER', 'HOLDFAST_LISTENER'])
  assert.match(warnings[0].message, /thrown by a listener/)
  assert.match(warnings[1].message, /rejected by a listener/)
})

test('a storm is taken in batches with a pause between them', async (t) => {
  const { provider, addon } = await tellingProvider(t)
  const heard = []
  provider.on('event', (event) => heard.push(event.name))
  t.mock.timers.enable({ apis: ['setTimeout'] })
  for (let i = 0; i < 50; i++) addon.tell({ name: `n${i}` })
  assert.equal(addon.taken, 1)
  t.mock.timers.tick(100)
  assert.equal(addon.taken, 2)
  assert.equal(heard.length, 50)
})

test('nothing is asked of the addon before the first listener and after the last', async (t) => {
  const { provider, addon } = await tellingProvider(t)
  assert.equal(addon.bell, undefined)
  const listener = () => {}
  provider.on('event', listener).on('warning', listener)
  provider.off('event', listener)
  assert.notEqual(addon.bell, undefined)
  provider.off('warning', listener)
  assert.equal(addon.bell, undefined)
})

test('closing tells what is left and then nothing more', async (t) => {
  const { provider, addon } = await tellingProvider(t)
  const heard = []
  provider.on('event', (event) => heard.push(event.name))
  addon.kept.push({ name: 'last', level: 'info', message: '', at: 1, count: 1 })
  await provider.close()
  assert.deepEqual(heard, ['last'])
  assert.equal(addon.bell, undefined)
})

test('unknown kinds and listeners that are no functions are refused', async (t) => {
  const { provider } = await tellingProvider(t)
  assert.throws(() => provider.on('evnt', () => {}), { code: 'INVALID_ARGUMENT', message: /"evnt".*event, warning, hub/ })
  assert.throws(() => provider.on('event', 'console.log'), { code: 'INVALID_ARGUMENT', message: /must be a function/ })
})
