// What cannot work is refused with one clear error: in time, with what to do, without a password, with nothing half made.

import assert from 'node:assert/strict'
import net from 'node:net'
import { test } from 'node:test'

import { PostgresProvider, Runtime } from 'holdfast'

import { PASSWORD, lockedServer } from './support/locked-server.mjs'
import { databaseUrl, freshSchema } from './support/world.mjs'

/** The error of a connect, which must hold every part and no password. */
async function refused(connecting, code, ...parts) {
  const error = await connecting.then(
    async (provider) => {
      await provider.close()
      assert.fail('it connected')
    },
    (error) => error,
  )
  assert.equal(error.code, code, error.message)
  for (const part of parts) assert.ok(error.message.includes(part), `"${error.message}" lacks "${part}"`)
  const all = `${error.message} ${error.stack} ${JSON.stringify(error)} ${error.cause?.message}`
  for (const secret of [PASSWORD, encodeURIComponent(PASSWORD), 'geheim']) assert.ok(!all.includes(secret), all)
}

test('wrong passwords, unknown roles and databases say what to correct', { timeout: 60_000 }, async (t) => {
  const server = await lockedServer(t)
  await refused(PostgresProvider.connect(server.at('poor', `${PASSWORD}x`)), 'INVALID_URL', '127.0.0.1', 'password authentication failed for user "poor"', 'check user and password')
  await refused(PostgresProvider.connect(server.at('nobody', PASSWORD)), 'INVALID_URL', '"nobody"', 'check user and password')
  await refused(PostgresProvider.connect(server.at('poor', PASSWORD, 'nix')), 'INVALID_URL', 'database "nix" does not exist', 'create the database')
})

test('missing rights say which grant is missing, and leave nothing behind', { timeout: 60_000 }, async (t) => {
  const server = await lockedServer(t)
  const poor = server.at('poor', PASSWORD)
  await refused(PostgresProvider.connectWithSchema(poor, 'rights_a'), 'SCHEMA', 'rights_a', 'grant it CREATE on the database', 'permission denied')
  assert.deepEqual(await server.sql("select 1 from pg_namespace where nspname = 'rights_a'"), [])

  await server.sql('create schema rights_b')
  await refused(PostgresProvider.connectWithSchema(poor, 'rights_b'), 'SCHEMA', 'rights_b', 'grant it USAGE on the schema')
  await server.sql('grant usage on schema rights_b to poor')
  await refused(PostgresProvider.connectWithSchema(poor, 'rights_b'), 'SCHEMA', 'grant it CREATE')
  assert.deepEqual(await server.sql("select 1 from pg_class where relnamespace = 'rights_b'::regnamespace"), [])
  await refused(PostgresProvider.connectWithSchema(poor, 'rights_c', { migrate: 'verify' }), 'SCHEMA', 'rights_c has version 0', "migrate 'apply'")
})

test('a schema of a newer release is refused and not touched', { timeout: 60_000 }, async (t) => {
  const server = await lockedServer(t)
  await (await PostgresProvider.connectWithSchema(server.url, 'newer')).close()
  await server.sql("insert into newer.migration (version, name) values (99, 'later')")
  await refused(PostgresProvider.connectWithSchema(server.url, 'newer'), 'SCHEMA', 'newer has version 99', 'upgrade this process')
  await refused(PostgresProvider.connectWithSchema(server.url, 'newer', { migrate: 'verify' }), 'SCHEMA', 'version 99')
  assert.deepEqual(await server.sql('select max(version) as version from newer.migration'), [{ version: 99 }])
})

test('malformed URLs are refused with the rule', async () => {
  await refused(PostgresProvider.connect('u:geheim@h/d'), 'INVALID_URL', 'begin with postgres://')
  await refused(PostgresProvider.connect('mysql://u:geheim@h/d'), 'INVALID_URL', 'begin with postgres://')
  await refused(PostgresProvider.connect('postgres://u:geheim%@h/d'), 'INVALID_URL', '%25')
  await refused(PostgresProvider.connect('postgres://u:geheim@h:0/d'), 'INVALID_URL', 'port')
  await refused(PostgresProvider.connect('postgres://u:geheim@h/d?foo=bar'), 'INVALID_URL', 'parameter foo')
  await refused(PostgresProvider.connect(databaseUrl(), { directUrl: 'geheim' }), 'INVALID_URL', 'option directUrl')
})

test('unreachable hosts are named, within the connect time limit', { timeout: 30_000 }, async (t) => {
  await refused(PostgresProvider.connect('postgres://u:geheim@127.0.0.1:1/d'), 'UNAVAILABLE', '127.0.0.1:1')
  await refused(PostgresProvider.connect('postgres://u:geheim@no-such-host.invalid/d'), 'UNAVAILABLE', 'no-such-host.invalid')
  await refused(PostgresProvider.connect(databaseUrl(), { directUrl: 'postgres://u:geheim@127.0.0.1:1/d' }), 'UNAVAILABLE', 'option directUrl', '127.0.0.1:1')
  // Accepts connections and says nothing.
  const silent = net.createServer(() => {}).listen(0, '127.0.0.1')
  t.after(() => silent.close())
  await new Promise((resolve) => silent.once('listening', resolve))
  const { port } = silent.address()
  const connecting = PostgresProvider.connect(`postgres://u:geheim@127.0.0.1:${port}/d`, { connectTimeoutMs: 300, retryAttempts: 0 })
  await refused(connecting, 'UNAVAILABLE', `127.0.0.1:${port}`, 'no answer within 300 ms')
})

test('options are refused before anything is connected or made', async (t) => {
  await refused(PostgresProvider.connect('postgres://u:geheim@127.0.0.1:1/d', { maxClient: 4 }), 'INVALID_OPTION', "did you mean 'maxClients'")
  await refused(PostgresProvider.connect('postgres://u:geheim@127.0.0.1:1/d', { maxClients: 33 }), 'INVALID_OPTION', 'maxClients: 33')
  const provider = await PostgresProvider.connectWithSchema(databaseUrl(), freshSchema())
  t.after(() => provider.close())
  assert.throws(() => new Runtime(provider, { heartbeatIntervalMs: '10s' }), { code: 'INVALID_OPTION', message: /staleAfterMs: 30000/ })
})
