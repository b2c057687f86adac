// Hints between processes: what one process makes ready another one starts at once, and the hub that hears it.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Client, PostgresProvider } from '../../index.mjs'
import { liveWorld, outputOf, startRuntime, until } from '../support/live.mjs'

/** Polling would find nothing before the test is over. */
const PATIENT = { dispatcherPollIntervalMs: '10m', dispatcherLongPollTimeoutMs: '10m' }

const orchestrations = { main: async (_ctx, word) => word }

/** A provider with a pool of its own on the schema of a world, as another process would have it. */
async function elsewhere(t, world) {
  const provider = await PostgresProvider.connectWithSchema(world.url, world.schema, { applicationName: `${world.schema}-other` })
  t.after(() => provider.close())
  return provider
}

test('work that another process makes is started by a hint', async (t) => {
  const world = await liveWorld(t)
  const states = []
  world.provider.on('hub', (event) => states.push(event.state))
  // Heartbeats look for work, too, and would find it first.
  await world.start({ orchestrations, options: { ...PATIENT, heartbeatIntervalMs: '1m', staleAfterMs: '10m' } })
  await until(() => states.includes('listening'), 'the hub listens')
  const client = new Client(await elsewhere(t, world))
  await client.startOrchestration('one', 'main', 'done')
  assert.equal(outputOf(await client.waitForOrchestration('one', 20_000)), 'done')
  assert.ok(world.provider.stats().counters.hintsHeard > 0)
  const present = []
  world.provider.on('hub', (event) => present.push(event))
  assert.deepEqual(present.map(({ name, state, level }) => ({ name, state, level })), [{ name: 'hub-state', state: 'listening', level: 'info' }])
})

test("a runtime with listener 'off' hears nothing and polls", async (t) => {
  const world = await liveWorld(t)
  await world.start({ orchestrations, options: { listener: 'off', dispatcherPollIntervalMs: 20 } })
  const provider = await elsewhere(t, world)
  const client = new Client(provider)
  await client.startOrchestration('one', 'main', 'done')
  assert.equal(outputOf(await client.waitForOrchestration('one', 20_000)), 'done')
  assert.equal(world.provider.stats().counters.hintsHeard, 0)
})

test("runtimes of one process share the hub of an elected listener", async (t) => {
  const world = await liveWorld(t)
  const second = await elsewhere(t, world)
  const state = {}
  const options = { listener: 'elected' }
  world.provider.on('hub', (event) => (state.one = event.state))
  await world.start({ orchestrations, options })
  await until(() => state.one === 'listening', 'the first is elected')
  second.on('hub', (event) => (state.two = event.state))
  await startRuntime(t, second, { orchestrations, options })
  await until(() => state.two === 'listening', 'the second hears by the same hub')
  const listeners = "select 1 from pg_stat_activity where application_name = $1"
  assert.deepEqual(await world.sql(listeners, [`${world.schema}-other-listener`]), [])
})
