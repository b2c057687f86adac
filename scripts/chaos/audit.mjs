// What must hold during and after a chaos run, asked of the database, of the ledger and of what the client was told.

import { setTimeout as delay } from 'node:timers/promises'

import { Client, PostgresProvider } from '../../index.mjs'

/** What was accepted ends after the last fault; a busy machine may take its time as long as something ends. */
const SETTLE_MS = 120_000

/** From one look for orphans to the next. */
const LOOK_MS = 3000

const ENDS = new Set(['OrchestrationCompleted', 'OrchestrationFailed', 'OrchestrationContinuedAsNew'])

const SQL = {
  open: `select count(*)::int as n from holdfast.instance where status in ('Pending', 'Running')`,
  instances: 'select instance, status, output, error, execution from holdfast.instance',
  history: 'select instance, execution, event_id, kind, source from holdfast.history order by instance, execution, event_id',
  left: `select (select count(*) from holdfast.turn_queue)::int as turns, (select count(*) from holdfast.activity_queue)::int as activities`,
}

/** Waits until nothing is open, or nothing has ended for the limit; gives the number of what is open. */
export async function settle(db) {
  let least = Infinity
  let until = 0
  for (;;) {
    const { rows } = await db.query(SQL.open)
    if (rows[0].n < least) [least, until] = [rows[0].n, Date.now() + SETTLE_MS]
    if (rows[0].n === 0 || Date.now() > until) return rows[0].n
    await delay(200)
  }
}

/**
 * Looks for orphans again and again, past the bad network; a look that the database does not answer is not counted. `end()`
 * takes a last one and gives `{ looks, findings }`.
 */
export function keepAuditing(url) {
  const findings = new Set()
  const over = new AbortController()
  let looks = 0
  let provider
  async function look() {
    provider ??= await PostgresProvider.connect(url, { maxClients: 1 })
    for (const { what, instance, event } of await new Client(provider).audit()) {
      findings.add(`${instance}${event === null ? '' : `, event ${event}`}: ${what}`)
    }
    looks += 1
  }
  async function keep() {
    while (!over.signal.aborted) {
      await look().catch((error) => {
        if (!error.retryable) throw error
      })
      await delay(LOOK_MS, undefined, { signal: over.signal }).catch(() => {})
    }
  }
  const kept = keep()
  kept.catch(() => over.abort())
  return {
    async end() {
      over.abort()
      await kept
      await look()
      await provider.close()
      return { looks, findings: [...findings] }
    },
  }
}

/** `{ finished, lost, doubled, violations }`. */
export async function audit(db, ledger, accepted, expectedOf) {
  const violations = []
  const { rows: instances } = await db.query(SQL.instances)
  const byId = new Map(instances.map((row) => [row.instance, row]))
  let finished = 0
  let lost = 0
  for (const flow of accepted) {
    const row = byId.get(flow.id)
    if (row?.status === 'Completed') {
      finished += 1
      if (row.output !== JSON.stringify(expectedOf(flow))) violations.push(`${flow.id} (${flow.kind}) came to ${row.output}, not ${expectedOf(flow)}`)
    } else if (flow.complete) {
      lost += 1
      violations.push(`${flow.id} (${flow.kind}) is ${row?.status ?? 'unknown'} ${row?.error ?? ''}`)
    }
  }
  const { rows: events } = await db.query(SQL.history)
  const doubled = auditHistory(events, byId, violations)
  await auditLedger(ledger, events, violations)
  return { finished, lost, doubled, violations }
}

/** Gapless, one end and that last, one result for each step and none without one; the number of results too many. */
function auditHistory(events, instances, violations) {
  let doubled = 0
  let scheduled = new Map()
  let before
  for (const event of events) {
    const where = `${event.instance}/${event.execution}`
    const continues = before?.instance === event.instance && before.execution === event.execution
    if (!continues) scheduled = new Map()
    if (event.event_id !== (continues ? before.event_id + 1 : 1)) violations.push(`${where}: a gap before event ${event.event_id}`)
    if (continues && ENDS.has(before.kind)) violations.push(`${where}: ${event.kind} after its end`)
    if (/(Scheduled|Created)$/.test(event.kind)) scheduled.set(event.event_id, 0)
    if (/^(Activity|SubOrchestration)(Completed|Failed)$|^TimerFired$/.test(event.kind)) {
      const results = scheduled.get(event.source)
      if (results === undefined) violations.push(`${where}: event ${event.event_id} has a result for a step that was not asked for`)
      else if (results > 0) doubled += 1
      scheduled.set(event.source, (results ?? 0) + 1)
    }
    before = event
  }
  const last = new Map(events.map((event) => [`${event.instance}/${event.execution}`, event.kind]))
  for (const row of instances.values()) {
    if (row.status === 'Completed' && !ENDS.has(last.get(`${row.instance}/${row.execution}`))) violations.push(`${row.instance}: completed without an end in its history`)
  }
  return doubled
}

/** Every recorded result has an effect that ran to its end, and no effect belongs to a step that nobody asked for. */
async function auditLedger(ledger, events, violations) {
  const { rows } = await ledger.query('select key, bool_or(ended_at is not null) as ended from effect group by key')
  const ended = new Map(rows.map(({ key, ended }) => [key, ended]))
  const asked = new Set()
  for (const { instance, execution, event_id: id, kind, source } of events) {
    if (kind === 'ActivityScheduled') asked.add(`${instance}/${execution}/${id}`)
    const key = `${instance}/${execution}/${source}`
    if (kind === 'ActivityCompleted' && !ended.get(key)) violations.push(`${key}: a result without an effect`)
  }
  for (const key of ended.keys()) if (!asked.has(key)) violations.push(`${key}: an effect of a step that is not in the history`)
}

/** Ms from each kill to the next start of what the killed process had begun. */
export async function recoveryTimes(ledger, kills) {
  const times = []
  for (const { pid, at } of kills) {
    const { rows } = await ledger.query(
      `select extract(epoch from min(b.started_at) - $2::timestamptz) * 1000 as ms
       from effect a join effect b on b.key = a.key and b.started_at > $2
       where a.pid = $1 and a.ended_at is null and a.started_at <= $2 group by a.key`, [pid, at])
    times.push(...rows.map(({ ms }) => Math.round(Number(ms))))
  }
  return times
}
