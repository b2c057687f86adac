// What the engine tells about itself: events of the provider, on the real engine and a real database.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'

import { liveWorld, until } from '../support/live.mjs'
import { databaseUrl, freshSchema } from '../support/world.mjs'

test('a lost connection is told to every provider that shares the pool', async (t) => {
  const pool = { applicationName: `events-${freshSchema()}` }
  const [one, two] = [await liveWorld(t, { pool }), await liveWorld(t, { pool })]
  const heard = { one: [], two: [] }
  one.provider.on('warning', (event) => heard.one.push(event))
  two.provider.on('warning', (event) => heard.two.push(event))
  await one.sql('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [pool.applicationName])
  const lost = (events) => events.find(({ name }) => name === 'pool-connection-lost')
  // Looking at the pool is what finds a dead idle connection.
  await until(async () => {
    await one.client.getStatus('nobody').catch(() => {})
    return lost(heard.one) && lost(heard.two)
  }, 'both hear of it')
  const event = lost(heard.one)
  assert.match(event.message, /connection was lost while it was (idle|checked-out)/)
  assert.equal(event.level, 'warn')
  assert.ok(event.at instanceof Date)
  assert.ok(['idle', 'checked-out'].includes(event.when))
})

test('a listener keeps no process alive', async (t) => {
  const program = `
    import { PostgresProvider } from 'holdfast'
    const provider = await PostgresProvider.connectWithSchema(process.env.URL, process.env.SCHEMA)
    provider.on('event', () => {})`
  const env = { ...process.env, URL: databaseUrl(), SCHEMA: freshSchema() }
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], { env, stdio: 'inherit' })
  t.after(() => child.kill())
  assert.deepEqual(await once(child, 'exit'), [0, null])
})

test('a refused commit is told with its instance', async (t) => {
  const world = await liveWorld(t)
  const heard = []
  world.provider.on('warning', (event) => heard.push(event))
  await world.sql('alter table history_turn add constraint no_storms check (data not like $$%storm%$$)')
  await world.start({
    orchestrations: { main: async (_ctx, word) => word },
  })
  await world.client.startOrchestration('one', 'main', 'storm').catch(() => {})
  await until(() => ['commit-refused', 'instance-parked'].every((word) => heard.some(({ name }) => name === word)), 'the refusal is told')
  const refused = heard.find(({ name }) => name === 'commit-refused')
  assert.deepEqual([refused.instance, refused.level, refused.code], ['one', 'error', 'QUERY'])
  assert.match(refused.message, /no_storms/)
  assert.doesNotMatch(JSON.stringify(heard), /DETAIL|storm[^s]/, 'the data stay out of every event')
})
