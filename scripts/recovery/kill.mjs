// A worker that holds activities and turns is killed; when does each of them run elsewhere?
//
// Leases are ten minutes long, so that liveness alone decides. What is recovered from a dead node is claimed one by one (it may
// have killed the node), which is part of the time.

import { setTimeout as delay } from 'node:timers/promises'

import { Client, PostgresProvider } from '../../index.mjs'
import { Process, startAll } from './process.mjs'

const HELD = 100
const LEASES = { orchestratorLockTimeoutMs: '10m', workerLockTimeoutMs: '10m' }

/** Longest sleep of a claimer that no hint reaches. */
const POLL_MS = 1000

/** The two settings that are measured. */
export const SETTINGS = {
  default: { heartbeatIntervalMs: 5000, staleAfterMs: 30_000 },
  fast: { heartbeatIntervalMs: 1000, staleAfterMs: 5000 },
}

/** Kills a worker; gives `{ items, p50Ms, p99Ms, maxMs, boundMs }`. */
export async function measureKill({ url, schema, sql, setting }) {
  const options = { ...SETTINGS[setting], ...LEASES }
  const provider = await PostgresProvider.connectWithSchema(url, schema)
  const client = new Client(provider)
  // Its loop is to stand still over its turns, and not to give any of them back.
  const calm = { eventLoopStallTimeoutMs: 0, eventLoopHangTimeoutMs: 0 }
  const slots = { orchestrationConcurrency: HELD, workerConcurrency: HELD }
  const victim = new Process({ url, schema, role: 'victim', options: { ...options, ...slots, ...calm } })
  await victim.ready()
  const ids = (kind) => Array.from({ length: HELD }, (_, index) => `${kind}-${index}`)
  await Promise.all(ids('holder').map((id) => client.startOrchestration(id, 'holder', id)))
  await held(sql, schema, 'activity_queue')
  await Promise.all(ids('turn').map((id) => client.startOrchestration(id, 'turn', id)))
  await held(sql, schema, 'turn_queue')
  const rescuers = await startAll(Array.from({ length: 3 }, () => ({ url, schema, role: 'rescuer', options })))
  // A new process recovers by other rules than one with a past; here the usual case is measured.
  await delay(options.staleAfterMs + 2 * options.heartbeatIntervalMs)
  const killedAt = Date.now()
  await victim.kill()
  const { heartbeatIntervalMs, staleAfterMs } = options
  const boundMs = staleAfterMs + heartbeatIntervalMs + POLL_MS + 1000
  const times = await ran(rescuers, 2 * HELD, killedAt, 2 * boundMs)
  await Promise.all(rescuers.map((each) => each.stop()))
  await provider.close()
  times.sort((a, b) => a - b)
  const at = (part) => times[Math.max(0, Math.ceil(times.length * part) - 1)] ?? null
  return { items: times.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1), boundMs }
}

/** Whether what was measured keeps its bound. */
export function keepsBound({ items, maxMs, boundMs }) {
  return items === 2 * HELD && maxMs <= boundMs
}

async function held(sql, schema, table) {
  for (;;) {
    const { rows } = await sql.query(`select count(*)::int as n from "${schema}".${table} where owner is not null`)
    if (rows[0].n >= HELD) return
    await delay(50)
  }
}

/** Times from the kill until each item first ran, as far as that happens within the limit. */
async function ran(rescuers, count, killedAt, limitMs) {
  const first = new Map()
  while (first.size < count && Date.now() - killedAt < limitMs) {
    for (const rescuer of rescuers) {
      for (const { ran: id, at } of rescuer.heard) {
        if (id !== undefined && !first.has(id)) first.set(id, at - killedAt)
      }
    }
    await delay(20)
  }
  return [...first.values()]
}
