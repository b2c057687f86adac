// A password that changes, as a token does: who connects after the change shows the new one.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { Client, PostgresProvider, Runtime } from 'holdfast'

import { until } from './support/live.mjs'
import { lockedServer } from './support/locked-server.mjs'

test('a pool connects with the token of the moment; a runtime lives through the change', async (t) => {
  const server = await lockedServer(t)
  await server.sql('grant create on database postgres to poor')
  const { port } = new URL(server.at('poor', 'x'))
  let current = 'first token'
  let fetched = 0
  const turn = async (next) => {
    await server.sql(`alter role poor password '${next}'`)
    current = next
  }
  await turn(current)
  const provider = await PostgresProvider.connectWithEntra('127.0.0.1', Number(port), 'postgres', 'poor', {
    getToken: async () => (fetched++, { token: current }),
    refreshIntervalMs: 1000,
    sslmode: 'disable',
  })
  t.after(() => provider.close())
  const runtime = new Runtime(provider, { heartbeatIntervalMs: 500, staleAfterMs: 5000 })
  runtime.registerOrchestration('main', async () => 'done')
  await runtime.start()
  t.after(() => runtime.shutdown())
  const client = new Client(provider)
  const run = async (id) => {
    await client.startOrchestration(id, 'main')
    return (await client.waitForOrchestration(id)).output
  }
  assert.equal(await run('before'), 'done')
  await turn('second token')
  const before = fetched
  await until(() => fetched > before, 'a new token')
  // Every open session goes; what comes in their place needs the new token.
  await server.sql("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'poor'")
  await until(async () => (await run(`after-${Math.random()}`).catch(() => '')) === 'done', 'work goes on')
  const sessions = await server.sql("select count(*)::int as n from pg_stat_activity where usename = 'poor'")
  assert.ok(sessions[0].n > 0)
})

test('a token that is wrong is told as such, without showing it', async (t) => {
  const server = await lockedServer(t)
  const { port } = new URL(server.at('poor', 'x'))
  const connect = PostgresProvider.connectWithEntra('127.0.0.1', Number(port), 'postgres', 'poor', { getToken: () => 'secret-token', sslmode: 'disable' })
  await assert.rejects(connect, (error) => error.code === 'INVALID_URL' && !`${error.stack} ${error.cause}`.includes('secret-token'))
})
