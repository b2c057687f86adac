// One part of the lifetime run, in a process of its own: `node part.mjs PART URL COUNT`. The last line is its JSON. The process
// must end by itself; whoever started it sees whether it does.

import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { Worker, isMainThread, workerData } from 'node:worker_threads'

import pg from 'pg'

import { Client, PostgresProvider, Runtime } from '../../index.mjs'

/** How long what was let go may take to be gone: a goodbye to the database takes a moment. */
const SETTLE_MS = 3000

/**
 * What this process and its sessions hold, after a collection: the least that is seen within a while. The pool's sessions come
 * and go within its bound; they are not counted.
 */
async function holdings(url, provider) {
  const until = Date.now() + SETTLE_MS
  async function lookTwice() {
    const pooled = provider === undefined ? 0 : provider.stats().pool.total
    const { descriptors, ...seen } = look()
    return { ...seen, descriptors: descriptors - pooled, sessions: (await sessions(url)) - pooled }
  }
  let least = await lookTwice()
  while (Date.now() < until) {
    await delay(100)
    const now = await lookTwice()
    least = Object.fromEntries(Object.entries(now).map(([field, value]) => [field, Math.min(value, least[field])]))
  }
  return least
}

async function sessions(url) {
  const client = new pg.Client({ connectionString: url, application_name: 'lifetime' })
  await client.connect()
  const { rows } = await client.query("select count(*)::int as n from pg_stat_activity where application_name like 'holdfast%'")
  await client.end()
  return rows[0].n
}

function look() {
  globalThis.gc?.()
  const status = readFileSync('/proc/self/status', 'utf8')
  const number = (field) => Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1])
  return {
    rssMb: Math.round(number('VmRSS') / 1024),
    heapMb: Math.round(process.memoryUsage().heapUsed / 2 ** 20),
    threads: number('Threads'),
    descriptors: readdirSync('/proc/self/fd').length,
    resources: process.getActiveResourcesInfo().length,
  }
}

function runtimeOn(provider) {
  const runtime = new Runtime(provider, { orchestrationConcurrency: 64, workerConcurrency: 64, stickyCacheSize: 200, heartbeatIntervalMs: 500, staleAfterMs: 5000 })
  runtime.registerActivity('step', async (_ctx, n) => n + 1)
  runtime.registerActivity('fail', async (_ctx, n) => {
    throw Object.assign(new Error(`number ${n}`), { code: 'E_FAIL', n })
  })
  runtime.registerOrchestration('work', async (ctx, n) => await ctx.scheduleActivity('step', n))
  runtime.registerOrchestration('throw', async (ctx, n) => {
    await ctx.scheduleActivity('fail', n)
  })
  return runtime
}

/** Runs `count` orchestrations, a tenth at a time, and deletes them; what is held after each tenth. */
async function many(url, count, name, wanted) {
  const provider = await PostgresProvider.connect(url)
  const client = new Client(provider)
  const runtime = runtimeOn(provider)
  await runtime.start()
  const seen = []
  for (let tenth = 0; tenth < 10; tenth++) {
    const ids = Array.from({ length: Math.ceil(count / 10) }, (_, n) => `${name}-${tenth}-${n}`)
    for (let from = 0; from < ids.length; from += 200) {
      const slice = ids.slice(from, from + 200)
      const ends = await Promise.all(slice.map(async (id, n) => {
        await client.startOrchestration(id, name, from + n)
        return await client.waitForOrchestration(id, 60_000)
      }))
      const odd = ends.find(({ status }) => status !== wanted)
      if (odd !== undefined) throw new Error(`an end that is not ${wanted}: ${JSON.stringify(odd)}`)
    }
    for (let left = ids.length; left > 0; left -= 1000) await client.deleteInstanceBulk({ limit: 1000 })
    seen.push(await holdings(url, provider))
  }
  await runtime.shutdown()
  await provider.close()
  return seen
}

/** Starts and stops a runtime again and again on one provider. */
async function cycles(url, count) {
  const provider = await PostgresProvider.connect(url)
  const client = new Client(provider)
  const seen = []
  for (let n = 0; n < count; n++) {
    const runtime = runtimeOn(provider)
    await runtime.start()
    await client.startOrchestration(`cycle-${n}`, 'work', n)
    const { status } = await client.waitForOrchestration(`cycle-${n}`, 30_000)
    if (status !== 'Completed') throw new Error(`cycle ${n} ended as ${status}`)
    await runtime.shutdown()
    if ((n + 1) % Math.ceil(count / 10) === 0) seen.push(await holdings(url, provider))
  }
  await provider.close()
  return seen
}

/** How often they are made: three times show nothing beside a first one that is larger or smaller. */
const ROUNDS = 6

/** Runtimes in worker threads, made and ended, some without a goodbye. */
async function threads(url, count) {
  const seen = [await holdings(url)]
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all(Array.from({ length: count }, (_, n) => new Promise((resolve, reject) => {
      const worker = new Worker(new URL(import.meta.url), { workerData: { url, id: `thread-${round}-${n}`, leaves: n % 4 === 0 } })
      worker.once('error', reject)
      worker.once('message', () => n % 4 === 0 && worker.terminate())
      worker.once('exit', resolve)
    })))
    seen.push(await holdings(url))
  }
  return seen
}

async function inThread({ url, id, leaves }) {
  const { parentPort } = await import('node:worker_threads')
  const provider = await PostgresProvider.connect(url, { maxClients: 2, acquireTimeoutMs: 60_000, connectTimeoutMs: 60_000 })
  const client = new Client(provider)
  const runtime = runtimeOn(provider)
  await runtime.start()
  await client.startOrchestration(id, 'work', 1)
  const { status } = await client.waitForOrchestration(id, 60_000)
  if (status !== 'Completed') throw new Error(`${id} ended as ${status}`)
  parentPort.postMessage('done')
  if (leaves) return
  await runtime.shutdown()
  await provider.close()
}

const PARTS = {
  workflows: (url, count) => many(url, count, 'work', 'Completed'),
  errors: (url, count) => many(url, count, 'throw', 'Failed'),
  cycles,
  threads,
}

if (isMainThread) {
  const [, , part, url, count] = process.argv
  const seen = await PARTS[part](url, Number(count))
  console.log(JSON.stringify({ part, count: Number(count), seen }))
} else {
  await inThread(workerData)
}
