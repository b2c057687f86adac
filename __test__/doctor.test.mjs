// `holdfast doctor` on real servers: what it finds, its exit code, and that it shows no password.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

import pg from 'pg'

import { PostgresProvider } from 'holdfast'

import { startRuntime } from './support/live.mjs'
import { PASSWORD, lockedServer } from './support/locked-server.mjs'
import { databaseUrl, freshSchema } from './support/world.mjs'

const main = fileURLToPath(new URL('../dist/cjs/cli/main.js', import.meta.url))

/** Runs it; gives the exit code, the findings by name, and all that was printed. */
async function doctor(args, env = {}) {
  const child = spawn(process.execPath, [main, 'doctor', ...args, '--json'], { env: { PATH: process.env.PATH, ...env } })
  let text = ''
  child.stdout.on('data', (part) => (text += part))
  child.stderr.on('data', (part) => (text += part))
  const code = await new Promise((resolve) => child.on('close', resolve))
  const { findings } = JSON.parse(text)
  const by = (id) => findings.find((finding) => finding.id === id)
  return { code, findings, text, level: (id) => by(id)?.level, about: (id) => `${by(id)?.text} ${by(id)?.advice}` }
}

async function schemaWithNode(t) {
  const schema = freshSchema()
  const provider = await PostgresProvider.connectWithSchema(databaseUrl(), schema)
  t.after(() => provider.close())
  return { schema, provider }
}

async function session(t, url = databaseUrl()) {
  const client = new pg.Client(url)
  await client.connect()
  t.after(() => client.end())
  return client
}

test('a sound deployment has no warning, and the code is 0', { timeout: 60_000 }, async (t) => {
  const { schema, provider } = await schemaWithNode(t)
  await startRuntime(t, provider, { activities: { idle: async () => null } })
  const found = await doctor([databaseUrl(), '--schema', schema])
  const looked = ['reachable', 'version', 'tls', 'clock', 'schema', 'grants', 'pooler', 'direct', 'connections', 'leases', 'vacuum', 'nodes', 'retention']
  for (const id of looked) assert.equal(found.level(id), 'ok', `${id}: ${found.about(id)}`)
  assert.match(found.about('nodes'), /1 nodes are alive/)
})

test('no URL, no server, a wrong password: code 2, what to do, no password', { timeout: 60_000 }, async (t) => {
  const none = await doctor([])
  assert.equal(none.code, 2)
  assert.match(none.about('url'), /HOLDFAST_DATABASE_URL/)

  const away = await doctor([`postgres://u:${encodeURIComponent(PASSWORD)}@127.0.0.1:1/d`])
  assert.equal(away.code, 2)
  assert.match(away.about('reachable'), /127\.0\.0\.1:1.*Check host/)

  const server = await lockedServer(t)
  const wrong = await doctor([], { HOLDFAST_DATABASE_URL: server.at('poor', `${PASSWORD}x`) })
  assert.equal(wrong.code, 2)
  assert.match(wrong.about('reachable'), /check user and password.*password authentication failed/)
  for (const { text } of [away, wrong]) {
    for (const secret of [PASSWORD, encodeURIComponent(PASSWORD)]) assert.ok(!text.includes(secret), text)
  }
})

test('no schema, missing rights and a newer schema', { timeout: 60_000 }, async (t) => {
  const server = await lockedServer(t)
  const fresh = await doctor([server.url, '--schema', 'fresh'])
  assert.equal(fresh.code, 1)
  assert.match(fresh.about('schema'), /does not exist.*connect\(\) makes it/)
  assert.deepEqual(await server.sql("select 1 from pg_namespace where nspname = 'fresh'"), [], 'it makes nothing')

  const poor = await doctor([server.at('poor', PASSWORD), '--schema', 'fresh'])
  assert.equal(poor.code, 2)
  assert.match(poor.about('schema'), /poor may not create it.*Grant CREATE/)

  await (await PostgresProvider.connectWithSchema(server.url, 'there')).close()
  assert.match((await doctor([server.at('poor', PASSWORD), '--schema', 'there'])).about('schema'), /Grant USAGE/)
  await server.sql('grant usage on schema there to poor; grant select on there.migration to poor')
  const reader = await doctor([server.at('poor', PASSWORD), '--schema', 'there'])
  assert.match(reader.about('grants'), /may not read and write .*turn_queue.*Grant SELECT/)

  await server.sql("insert into there.migration (version, name) values (99, 'later')")
  const newer = await doctor([server.url, '--schema', 'there'])
  assert.equal(newer.code, 2)
  assert.match(newer.about('schema'), /version 99.*Upgrade this process/)
})

test('autovacuum that is off, overdue and unserved work are found', { timeout: 60_000 }, async (t) => {
  const { schema } = await schemaWithNode(t)
  const sql = await session(t)
  await sql.query(`alter table "${schema}".turn_queue set (autovacuum_enabled = off)`)
  const queued = `insert into "${schema}".turn_queue (instance, name, due_at) values ('a', 'nobody', now() - interval '2 minutes')`
  await sql.query(queued)
  const found = await doctor([databaseUrl(), '--schema', schema])
  assert.equal(found.code, 2)
  assert.match(found.about('autovacuum'), /turn_queue/)
  assert.match(found.about('nodes'), /no node is alive, and 1 items wait/)
  assert.match(found.about('unserved'), /1 due items of orchestration 'nobody' wait/)
  assert.match(found.about('overdue'), /1 turns are due, the oldest for 12\d s/)
})

test('options of the environment are part of the check', { timeout: 60_000 }, async (t) => {
  const { schema } = await schemaWithNode(t)
  const args = [databaseUrl(), '--schema', schema]
  const misspelt = await doctor(args, { HOLDFAST_WORKER_CONCURENCY: '5' })
  assert.equal(misspelt.code, 1)
  assert.match(misspelt.about('variables'), /HOLDFAST_WORKER_CONCURENCY.*HOLDFAST_WORKER_CONCURRENCY/)
  const wrong = await doctor(args, { HOLDFAST_STALE_AFTER_MS: '1s' })
  assert.equal(wrong.code, 2)
  assert.match(wrong.about('options'), /staleAfterMs: 1000 .*HOLDFAST_STALE_AFTER_MS/)
  const short = await doctor(args, { HOLDFAST_ORCHESTRATOR_LOCK_TIMEOUT_MS: '1', HOLDFAST_DISPATCHER_POLL_INTERVAL_MS: '1' })
  assert.match(short.about('leases'), /shortest lease is only 1 ms.*orchestratorLockTimeoutMs/)
  assert.match(short.about('polling'), /dispatcherPollIntervalMs/)
  const wide = await doctor(args, { HOLDFAST_POOL_MAX_CLIENTS: '32', HOLDFAST_RETENTION_MS: '7d' })
  assert.match(wide.about('connections'), /up to 34 sessions/)
  assert.match(wide.about('retention'), /kept for 604800000 ms/)
})

const pooler = process.env.HOLDFAST_TEST_POOLER_URL
if (pooler) {
  test('a transaction pooler that the options do not name is found', { timeout: 60_000 }, async (t) => {
    const { schema } = await schemaWithNode(t)
    const unsaid = await doctor([pooler, '--schema', schema])
    assert.equal(unsaid.level('pooler'), 'warning', unsaid.text)
    assert.match(unsaid.about('pooler'), /HOLDFAST_POOL_POOLED/)
    assert.equal(unsaid.level('direct'), 'warning', unsaid.text)
    const said = await doctor([pooler, '--schema', schema], { HOLDFAST_POOL_POOLED: 'true', HOLDFAST_DIRECT_URL: databaseUrl() })
    assert.equal(said.level('pooler'), 'ok', said.text)
    assert.equal(said.level('direct'), 'ok', said.text)
  })
}
