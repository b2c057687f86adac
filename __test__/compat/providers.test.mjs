// Table "Providers": SqliteProvider as a stand-in, PostgresProvider, and what newcomers get wrong with both.
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'

import pg from 'pg'

import { Client, PostgresProvider, Runtime, SqliteProvider } from '../../index.mjs'
import { embeddedUrl } from '../../dist/esm/dev/index.js'
import { databaseUrl, freshSchema } from '../support/world.mjs'

/** Runs one greeting on a provider. */
async function greet(t, provider, id) {
  const runtime = new Runtime(provider, { dispatcherPollIntervalMs: 50 })
  runtime.registerActivity('hello', async (_ctx, name) => `hello ${name}`)
  runtime.registerOrchestration('greet', function* (ctx, name) {
    return yield ctx.scheduleActivity('hello', name)
  })
  await runtime.start()
  t.after(() => runtime.shutdown(0))
  const client = new Client(provider)
  await client.startOrchestration(id, 'greet', 'you')
  assert.equal((await client.waitForOrchestration(id)).output, 'hello you')
  return { client, runtime }
}

function folder(t) {
  const made = mkdtempSync(path.join(tmpdir(), 'holdfast-compat-'))
  t.after(() => rmSync(made, { recursive: true, force: true }))
  return made
}

test('SqliteProvider.inMemory gives a separate database at each call', async (t) => {
  const one = await SqliteProvider.inMemory()
  t.after(() => one.close())
  const two = await SqliteProvider.inMemory()
  t.after(() => two.close())
  await greet(t, one, 'a')
  assert.deepEqual(await new Client(one).listAllInstances(), ['a'])
  assert.deepEqual(await new Client(two).listAllInstances(), [])
  assert.equal(one instanceof PostgresProvider, true)
  assert.equal(one.source, 'embedded')
})

test('SqliteProvider.open makes file and folders, finds its data again, and starts empty without the file', async (t) => {
  const file = path.join(folder(t), 'deep/er/app.db')
  const first = await SqliteProvider.open(file)
  const { runtime } = await greet(t, first, 'kept')
  await runtime.shutdown()
  await first.close()
  assert.equal(existsSync(file), true)
  const again = await SqliteProvider.open(`sqlite:${file}?mode=rwc`)
  assert.deepEqual(await new Client(again).listAllInstances(), ['kept'])
  await again.close()
  rmSync(file)
  const empty = await SqliteProvider.open(file)
  t.after(() => empty.close())
  assert.deepEqual(await new Client(empty).listAllInstances(), [])
})

test('SqliteProvider.open takes an empty file as an empty database', async (t) => {
  const file = path.join(folder(t), 'empty.db')
  writeFileSync(file, '')
  const provider = await SqliteProvider.open(file)
  t.after(() => provider.close())
  assert.deepEqual(await new Client(provider).listAllInstances(), [])
  assert.match(readFileSync(file, 'utf8'), /stand-in/)
})

test('SqliteProvider.open says what it cannot create and what it cannot read', async (t) => {
  const there = folder(t)
  const plain = path.join(there, 'plain')
  writeFileSync(plain, 'something else')
  await assert.rejects(SqliteProvider.open(path.join(plain, 'x.db')), /^HoldfastError: Failed to create DB file: /)
  await assert.rejects(SqliteProvider.open(plain), /^HoldfastError: Failed to open SQLite: .* is not a file that SqliteProvider made/)
  await assert.rejects(SqliteProvider.open(there), /^HoldfastError: Failed to open SQLite: /)
  await assert.rejects(SqliteProvider.open(''), { code: 'INVALID_ARGUMENT' })
})

test('a memory database is dropped when its provider is closed', async (t) => {
  const one = await SqliteProvider.inMemory()
  const { url, release } = await embeddedUrl()
  t.after(release)
  const session = new pg.Client(url)
  await session.connect()
  t.after(() => session.end())
  const count = async () => (await session.query('select 1 from pg_namespace where nspname = $1', [one.schema])).rowCount
  assert.equal(await count(), 1)
  await one.close()
  assert.equal(await count(), 0)
})

test('PostgresProvider.connectWithSchema makes the schema and keeps it apart from others', async (t) => {
  const [a, b] = [freshSchema(), freshSchema()]
  const one = await PostgresProvider.connectWithSchema(databaseUrl(), a)
  t.after(() => one.close())
  const two = await PostgresProvider.connectWithSchema(databaseUrl(), b)
  t.after(() => two.close())
  await greet(t, one, 'a')
  assert.deepEqual(await new Client(two).listAllInstances(), [])
})

test('PostgresProvider.connect without a server rejects with the documented words', async () => {
  await assert.rejects(
    PostgresProvider.connect('postgres://nobody@127.0.0.1:1/nothing', { retryAttempts: 0 }),
    /^[A-Za-z]+Error: Failed to connect to PostgreSQL: /,
  )
})

test('providers made with new, strings and promises in place of a provider are told what to write', () => {
  assert.throws(() => new PostgresProvider('postgres://x'), /use await PostgresProvider\.connect\(url\)/)
  assert.throws(() => new SqliteProvider(':memory:'), /use await/)
  assert.throws(() => new Client(Promise.resolve()), /provider is a promise: write await/)
  assert.throws(() => new Runtime(Promise.resolve()), /provider is a promise: write await/)
  assert.throws(() => new Client('postgres://x'), /provider is a string: pass await PostgresProvider\.connect\(url\)/)
})

for (const [name, call] of [
  ['connectWithEntra', () => PostgresProvider.connectWithEntra('host', 5432, 'db', 'user')],
  ['connectWithSchemaAndEntra', () => PostgresProvider.connectWithSchemaAndEntra('host', 5432, 'db', 'user', 'schema')],
]) {
  test(`PostgresProvider.${name} says how to connect with a token instead`, async () => {
    const words = name === 'connectWithEntra' ? 'Entra' : 'schema and Entra'
    await assert.rejects(call(), (error) => error.code === 'ENTRA_UNSUPPORTED' && error.message.startsWith(`Failed to connect with ${words}: `))
  })
}
