// Worker threads with runtimes of their own, which are ended while their calls are open.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'

import { liveWorld, until } from '../support/live.mjs'

/** Runs an orchestration that waits, waits for its end too, and never says goodbye. */
const THREAD = `
  const { parentPort, workerData } = require('node:worker_threads')
  const { entry, url, schema, applicationName, id } = workerData
  const { Client, PostgresProvider, Runtime } = require(entry)
  async function wait() {
    const provider = await PostgresProvider.connectWithSchema(url, schema, { maxClients: 2, applicationName })
    const runtime = new Runtime(provider)
    runtime.registerOrchestration('waits', async (ctx) => {
      ctx.setCustomStatus('waiting')
      await ctx.waitForEvent('go')
    })
    await runtime.start()
    const client = new Client(provider)
    await client.startOrchestration(id, 'waits')
    await client.waitForStatusChange(id, 0, 10, 30_000)
    const ended = client.waitForOrchestration(id, 3_600_000)
    parentPort.postMessage('waiting')
    await ended
  }
  wait()`

test('a thread that is ended takes its runtime, its open calls and its sessions along', async (t) => {
  const world = await liveWorld(t)
  const { url, schema } = world
  const entry = createRequire(import.meta.url).resolve('../../index.js')
  const applicationName = `thread-${schema}`
  const threads = Array.from({ length: 4 }, (_, n) => {
    const workerData = { entry, url, schema, applicationName, id: `waiting-${n}` }
    return new Worker(THREAD, { eval: true, workerData })
  })
  await Promise.all(threads.map((thread) => once(thread, 'message')))
  assert.equal((await world.sql('select 1 from node')).length, 4)

  await Promise.all(threads.map((thread) => thread.terminate()))
  // Long before the nodes would look stale to anybody.
  await until(async () => (await world.sql('select 1 from node')).length === 0, 'the goodbye of each node')
  // A listener of a process is kept for a while, for whoever comes next.
  const sessions = `select 1 from pg_stat_activity where application_name like $1 || '%' and application_name not like '%-listener'`
  await until(async () => (await world.sql(sessions, [applicationName])).length === 0, 'the end of each session')
})
