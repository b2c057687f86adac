// What a stretch of time cost: transactions and WAL bytes from the server, processor time from the system.

import { readFileSync, readdirSync } from 'node:fs'

export const now = () => performance.now()

/** A session beside the measured ones. */
export async function session(url) {
  // Not at the top: the process whose memory is measured makes none.
  const { default: pg } = await import('pg')
  const client = new pg.Client({ connectionString: url, application_name: 'bench' })
  await client.connect()
  return client
}

/** The value below which a share of the values lies. */
export function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))]
}

export const median = (values) => percentile(values, 0.5)

/** Runs `act(i)` for every i below `count`, `width` of them at a time. */
export async function callers(count, width, act) {
  let next = 0
  const one = async () => {
    while (next < count) await act(next++)
  }
  await Promise.all(Array.from({ length: Math.min(width, count) }, one))
}

/** Processor seconds of a process and of its children that ended; 0 where the system does not tell. */
function cpuOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ').map(Number)
    return { parent: fields[1], seconds: (fields[11] + fields[12] + fields[13] + fields[14]) / 100 }
  } catch {
    return { parent: 0, seconds: 0 }
  }
}

/** Processor seconds of the server: its first process and everything below it. */
function serverCpu(postmaster) {
  let seconds = cpuOf(postmaster).seconds
  let pids = []
  try {
    pids = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry)).map(Number)
  } catch {
    return 0
  }
  for (const pid of pids) {
    const { parent, seconds: own } = cpuOf(pid)
    if (parent === postmaster) seconds += own
  }
  return seconds
}

/** A look at all counters at one moment. */
export async function look(admin, database) {
  const { rows } = await admin.query(
    `select (xact_commit + xact_rollback)::float8 as transactions,
            pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 as wal,
            (select pid from pg_stat_activity where backend_type = 'checkpointer') as checkpointer
     from pg_stat_database where datname = $1`, [database])
  const { transactions, wal, checkpointer } = rows[0]
  const own = process.cpuUsage()
  return { at: now(), transactions, wal, server: serverCpu(cpuOf(checkpointer).parent), node: (own.user + own.system) / 1e6 }
}

/** The costs between two looks, for each of `count` items. */
export function costs(from, to, count) {
  const each = (value) => Number((value / count).toPrecision(4))
  return {
    transactions: each(to.transactions - from.transactions),
    walBytes: each(to.wal - from.wal),
    serverCpuMs: each((to.server - from.server) * 1000),
    nodeCpuMs: each((to.node - from.node) * 1000),
  }
}
