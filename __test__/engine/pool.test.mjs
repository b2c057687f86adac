// The pool as JavaScript sees it, on a real database: direct sessions, full servers, the end of everything.

import assert from 'node:assert/strict'
import { test } from 'node:test'

import pg from 'pg'

import * as holdfast from '../../index.mjs'
import { until } from '../support/live.mjs'
import { databaseUrl, freshSchema } from '../support/world.mjs'

const { CapacityError, Client, DirectDatabaseUrlError, DirectSessionCapacityError, PostgresProvider, closeAll } = holdfast

/** A session beside those of the package. */
async function observer(t) {
  const session = new pg.Client(databaseUrl())
  await session.connect()
  const sql = async (text, values) => (await session.query(text, values)).rows
  sql.atEnd = []
  t.after(async () => {
    for (const text of sql.atEnd) await sql(text)
    await session.end()
  })
  return sql
}

/** A role that may have so many connections, and the URL with its name. */
async function limitedRole(sql, limit) {
  const name = `role_${freshSchema()}`
  const [{ database }] = await sql('select current_database() as database')
  await sql(`create role ${name} login password 'secret' connection limit ${limit}`)
  await sql(`grant create on database ${pg.escapeIdentifier(database)} to ${name}`)
  sql.atEnd.push(`drop owned by ${name} cascade`, `drop role ${name}`)
  return { name, url: databaseUrl().replace(/\/\/[^@/]*@/, `//${name}:secret@`) }
}

/** Sessions with names that begin like this. */
const sessionsOf = async (sql, name) =>
  (await sql('select application_name as name from pg_stat_activity where starts_with(application_name, $1)', [name])).map((row) => row.name)

test('preflight: a direct session is proved and closed again', async (t) => {
  const sql = await observer(t)
  const applicationName = `probe-${freshSchema()}`
  const provider = await PostgresProvider.connectWithSchema(databaseUrl(), freshSchema(), { applicationName })
  t.after(() => provider.close())
  await provider.probeDirectSession()
  await until(async () => (await sessionsOf(sql, `${applicationName}-`)).length === 0, 'no session is left beside the pool')
})

test('preflight: a database without a session to spare is an error of its own', async (t) => {
  const sql = await observer(t)
  const { name, url } = await limitedRole(sql, 2)
  const provider = await PostgresProvider.connectWithSchema(url, freshSchema(), { maxClients: 1 })
  t.after(() => provider.close())
  await provider.warm()
  // The session of the migration is closed, but the server may count it a little longer.
  const open = 'select 1 from pg_stat_activity where usename = $1'
  await until(async () => (await sql(open, [name])).length === 1, 'the pool has the only session')
  await provider.probeDirectSession()
  await sql(`alter role ${name} connection limit 1`)
  const error = await provider.probeDirectSession().catch((thrown) => thrown)
  assert.ok(error instanceof DirectSessionCapacityError && error instanceof CapacityError, error)
  assert.deepEqual([error.code, error.name, error.retryable], ['DIRECT_SESSION_CAPACITY', 'DirectSessionCapacityError', true])
  assert.ok(error.retryAfterMs > 0)
})

test('preflight: no way past the pooler is the fault of the URL', async (t) => {
  const provider = await PostgresProvider.connectWithSchema(databaseUrl(), freshSchema(), { pooled: true })
  t.after(() => provider.close())
  await assert.rejects(provider.probeDirectSession(), { code: 'INVALID_URL', message: /directUrl/ })
})

test('class capacity: a server without room for one session is a CapacityError', async (t) => {
  const { url } = await limitedRole(await observer(t), 0)
  const error = await PostgresProvider.connectWithSchema(url, freshSchema()).catch((thrown) => thrown)
  assert.ok(error instanceof CapacityError && !(error instanceof DirectSessionCapacityError), error)
  assert.equal(error.code, 'CAPACITY')
  assert.ok(error.retryAfterMs > 0)
})

test("URLs: a provider's direct port is a DirectDatabaseUrlError that names the pooled one", async () => {
  const error = await PostgresProvider.connect('postgres://me:secret@eu.psdb.cloud:5432/app').catch((thrown) => thrown)
  assert.ok(error instanceof DirectDatabaseUrlError, error)
  assert.equal(error.code, 'DIRECT_DATABASE_URL')
  assert.match(error.message, /6432/)
  assert.doesNotMatch(error.message, /secret/)
})

test('close: closeAll ends every provider, pool and session of the process', async (t) => {
  const sql = await observer(t)
  const applicationName = `all-${freshSchema()}`
  const schema = freshSchema()
  const providers = [
    await PostgresProvider.connectWithSchema(databaseUrl(), schema, { applicationName }),
    await PostgresProvider.connectWithSchema(databaseUrl(), schema, { applicationName, maxClients: 3 }),
  ]
  for (const provider of providers) await provider.warm()
  await until(async () => (await sessionsOf(sql, applicationName)).length === 2, 'each pool has a session')
  await closeAll()
  await until(async () => (await sessionsOf(sql, applicationName)).length === 0, 'no session is left')
  for (const provider of providers) await assert.rejects(new Client(provider).getStatus('one'), { code: 'CLOSED' })
  await closeAll()
  for (const provider of providers) await provider.close()
})
