// The curves of docs/tuning.md: how often runtimes ask and how soon they find work, by their number, their poll interval and
// whether they listen; and what a lease costs that is short beside a claim.

import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'

import { Client, PostgresProvider, Runtime } from '../../index.mjs'
import { startProxy } from '../../scripts/chaos/proxy.mjs'
import { now, percentile } from './costs.mjs'

/** Idle time over which looks are counted. */
const IDLE_MS = 3000
/** Starts whose way to their first turn is timed. */
const STARTS = 20
/** What the proxy adds to each reply in the table of leases. */
const SLOW_MS = 100
/** Workflows of the table of leases, each two turns and one activity. */
const SLOW_WORKFLOWS = 20

/** Runtimes as if each had a process of its own: providers of their own, whose pools nobody shares. */
async function nodes(url, schema, count, options, begun = () => {}) {
  const started = []
  for (let i = 0; i < count; i++) {
    // As far as the work goes two connections are enough, and many runtimes fit on one server.
    const pool = { applicationName: `tuning-${i}`, maxClients: 2 }
    const provider = await PostgresProvider.connectWithSchema(url, schema, pool)
    const runtime = new Runtime(provider, { workerNodeId: `node-${i}`, ...options })
    runtime.registerActivity('work', async () => delay(20))
    runtime.registerOrchestration('empty', async (_ctx, id) => begun(id))
    runtime.registerOrchestration('one', async (ctx) => ctx.scheduleActivity('work', null))
    await runtime.start()
    started.push({ provider, runtime })
  }
  const sum = (...names) =>
    started.reduce((all, { provider }) => all + names.reduce((some, name) => some + provider.stats().counters[name], 0), 0)
  const stop = async () => {
    await Promise.all(started.map(({ runtime }) => runtime.shutdown(1000)))
    await Promise.all(started.map(({ provider }) => provider.close()))
  }
  return { sum, stop }
}

async function polling(url, runtimes, dispatcherPollIntervalMs, listener) {
  const schema = `tuning_${randomUUID().slice(0, 8)}`
  const begun = new Map()
  const options = { dispatcherPollIntervalMs, listener }
  const all = await nodes(url, schema, runtimes, options, (id) => void begun.set(id, now()))
  const provider = await PostgresProvider.connectWithSchema(url, schema, { applicationName: 'tuning-client' })
  const client = new Client(provider)
  // Sleeps grow to their longest, and every process hears that the others listen.
  await delay(3500)
  const idleFrom = all.sum('looks', 'claims')
  await delay(IDLE_MS)
  const idlePerS = ((all.sum('looks', 'claims') - idleFrom) * 1000) / IDLE_MS
  const busyFrom = all.sum('looks', 'claims')
  const pickups = []
  const from = now()
  for (let i = 0; i < STARTS; i++) {
    const id = `order-${i}`
    const asked = now()
    await client.startOrchestration(id, 'empty', id)
    await client.waitForOrchestration(id)
    pickups.push(begun.get(id) - asked)
    await delay(20 + ((i * 37) % 100))
  }
  // What the same time would have cost without a start is taken off.
  const idleMeanwhile = (idlePerS * (now() - from)) / 1000
  const asksPerStart = Math.max(0, all.sum('looks', 'claims') - busyFrom - idleMeanwhile) / STARTS
  await all.stop()
  await provider.close()
  const round = (value) => Math.round(value * 10) / 10
  return {
    runtimes, pollMs: dispatcherPollIntervalMs, listener,
    asksPerSIdle: round(idlePerS), asksPerStart: round(asksPerStart),
    pickupP50Ms: round(percentile(pickups, 0.5)), pickupP95Ms: round(percentile(pickups, 0.95)),
  }
}

async function leases(url, leaseMs) {
  const proxy = await startProxy({ host: '127.0.0.1', port: Number(new URL(url).port) })
  const through = new URL(url)
  through.port = proxy.port
  const schema = `tuning_${randomUUID().slice(0, 8)}`
  // No back-off between deliveries: what is seen is the lease alone.
  const options = { listener: 'off', orchestratorLockTimeoutMs: leaseMs, workerLockTimeoutMs: leaseMs, retryBackoffBaseMs: 1, retryBackoffMaxMs: 1, maxAttempts: 1000 }
  const both = await nodes(through.href, schema, 2, options)
  const provider = await PostgresProvider.connectWithSchema(url, schema, { applicationName: 'tuning-client' })
  const client = new Client(provider)
  proxy.set('slowReplies', SLOW_MS)
  const from = now()
  const ids = Array.from({ length: SLOW_WORKFLOWS }, (_, i) => `order-${i}`)
  await client.startMany(ids.map((id) => ({ orchestration: 'one', id })))
  await Promise.all(ids.map((id) => client.waitForOrchestration(id, 120_000)))
  const seconds = (now() - from) / 1000
  const claimed = both.sum('turnsClaimed', 'activitiesClaimed')
  proxy.set('pass')
  await both.stop()
  await provider.close()
  await proxy.stop()
  return { leaseMs, replyMs: SLOW_MS, claimsPerItem: Math.round((claimed / (3 * SLOW_WORKFLOWS)) * 100) / 100, seconds: Math.round(seconds * 10) / 10 }
}

/** Both tables, told as they grow. */
export async function tuning(url, tell) {
  const asks = []
  // The poll interval decides nothing for those that listen.
  for (const [listener, pollMs] of [['each', 100], ['off', 100], ['off', 1000]])
    for (const runtimes of [1, 8, 32]) {
      const row = await polling(url, runtimes, pollMs, listener)
      asks.push(row)
      tell(row)
    }
  const short = []
  for (const leaseMs of [25, 50, 100, 200, 400, 800, 3200]) {
    const row = await leases(url, leaseMs)
    short.push(row)
    tell(row)
  }
  return { asks, leases: short }
}
