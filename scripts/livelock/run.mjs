// One run of one variant: the deployment, its work, and what became of it.

import { fork } from 'node:child_process'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

import pg from 'pg'

import { Client, PostgresProvider } from '../../index.mjs'
import { VARIANTS } from './variants.mjs'

const POISON = 12

/** Back-off and number of deliveries, scaled down so that the last one of a poisoned item comes within seconds. */
const BACKOFF = { maxAttempts: 4, retryBackoffBaseMs: 250, retryBackoffMaxMs: 4000 }

/** Instances that are run before anything is slow, so that every process has sent its statements once. */
const WARM = 160

/** From the moment at which the work becomes due until it is: by then claims are slow. */
const LEAD_MS = 1000

/** Eight processes start at once, on whatever machine: what is slow here is the claim, by design. */
const POOL = { connectTimeoutMs: 60_000 }

/** Claims of poisoned items, written down by the database itself, whoever makes them. */
const LOG = `
  create table public.claim_log (instance text not null, deliveries int not null, at timestamptz not null);
  create function public.log_claim() returns trigger language plpgsql as $$
  begin
    insert into public.claim_log values (new.instance, new.deliveries, clock_timestamp());
    return null;
  end $$;
  create trigger log_claim after update on holdfast.turn_queue for each row
    when (new.deliveries > old.deliveries and new.instance like 'poison-%') execute function public.log_claim()`

const ENDED = `select count(*) filter (where instance like 'healthy-%' and status = 'Completed')::int as finished,
    count(*) filter (where instance like 'healthy-%' and status not in ('Completed', 'Pending', 'Running'))::int as poisoned,
    count(*) filter (where instance like 'poison-%' and status = 'Failed' and error like '%POISONED%')::int as settled,
    count(*) filter (where status in ('Pending', 'Running'))::int as open
  from holdfast.instance`

/** Nothing of the work is due while the processes start. */
const HELD_BACK = `update holdfast.turn_queue set due_at = clock_timestamp() + interval '1 hour'`

const SLOTS = 4

/** The first claims find a row for each slot; then healthy instances become due one after the other, so that what is due again
 * finds its place among them. */
const ARRIVAL = `update holdfast.turn_queue
  set due_at = statement_timestamp() + make_interval(secs => ($3::float8
    + case when instance like 'healthy-%' then greatest(substr(instance, 9)::int - $4::int, 0) * $1::float8 / $2::float8 else 0 end) / 1000)`

const DELIVERIES = `select deliveries, percentile_cont(0.5) within group (order by gap) as gap from (
    select deliveries, extract(epoch from at - lag(at) over (partition by instance order by at)) * 1000 as gap from public.claim_log) claims
  group by deliveries order by deliveries`

export async function runVariant({ server, variant, leaseMs, healthy, processes, limitMs }) {
  const admin = new pg.Client({ connectionString: server.url })
  await admin.connect()
  const database = `livelock_${variant}_${leaseMs}`
  await admin.query(`create database ${database}`)
  const url = new URL(server.url)
  url.pathname = `/${database}`
  const plan = await VARIANTS[variant](url.href)
  const db = new pg.Client({ connectionString: url.href })
  await db.connect()
  const workers = []
  try {
    await startWork(url.href, [...numbered('poison', POISON), ...numbered('healthy', healthy)])
    await db.query(HELD_BACK)
    await db.query(LOG)
    const options = {
      ...BACKOFF, ...plan.options, orchestrationConcurrency: SLOTS, workerConcurrency: 0,
      dispatcherPollIntervalMs: 10, dispatcherLongPollTimeoutMs: 1000, orchestratorLockTimeoutMs: leaseMs,
    }
    for (let i = 0; i < processes; i++) workers.push(startWorker({ url: plan.url, pool: { ...POOL, ...plan.pool }, options }))
    await Promise.all(workers.map((worker) => worker.ready))
    await Promise.all(workers.map((worker) => worker.ask('start')))
    await plan.prepare()
    await Promise.all(workers.map((worker) => worker.ask('warm')))
    await startWork(url.href, numbered('warm', WARM), true)
    await db.query(ARRIVAL, [plan.arrivalMs ?? 0, healthy, LEAD_MS, processes * SLOTS])
    const before = await counted(workers, 'counters')
    await plan.begin()
    const from = Date.now() + LEAD_MS
    let ended
    do {
      await delay(100)
      ended = (await db.query(ENDED)).rows[0]
    } while (ended.open > 0 && Date.now() - from < limitMs)
    const seconds = (Date.now() - from) / 1000
    await plan.end()
    const after = await counted(workers, 'stop')
    const sum = (name) => after[name] - before[name]
    return { variant, leaseMs, claimMs: plan.claimMs, ...(await report(db, ended, sum, seconds)), healthyTotal: healthy }
  } finally {
    for (const { child } of workers) child.kill('SIGKILL')
    await db.end()
    await admin.query(`drop database ${database} with (force)`)
    await admin.end()
  }
}

async function startWork(url, ids, awaited = false) {
  const provider = await PostgresProvider.connect(url, POOL)
  const client = new Client(provider)
  await Promise.all(ids.map((id) => client.startOrchestration(id, 'count', 1)))
  if (awaited) await Promise.all(ids.map((id) => client.waitForOrchestration(id, { timeoutMs: 60_000 })))
  await provider.close()
}

const numbered = (kind, count) => Array.from({ length: count }, (_, n) => `${kind}-${n}`)

/** Counters of all processes together, told with the answer to an order. */
async function counted(workers, order) {
  const answers = await Promise.all(workers.map((worker) => worker.ask(order)))
  const sum = (name) => answers.reduce((total, { counters }) => total + (counters?.[name] ?? 0), 0)
  return { claims: sum('claims'), poisoned: sum('poisoned') }
}

async function report(db, ended, sum, seconds) {
  const { rows: steps } = await db.query(DELIVERIES)
  const { rows: ends } = await db.query(
    `select count(*)::int as n from holdfast.history where instance like 'poison-%' and kind = 'OrchestrationFailed'`)
  return {
    maxAttempts: BACKOFF.maxAttempts,
    deliveriesMax: steps.at(-1)?.deliveries ?? 0,
    poisonSettled: ended.settled,
    poisonTotal: POISON,
    poisonEnds: ends[0].n,
    poisonReported: sum('poisoned'),
    healthyFinished: ended.finished,
    healthyPoisoned: ended.poisoned,
    intervalsMs: steps.filter(({ gap }) => gap !== null).map(({ gap }) => Math.round(Number(gap))),
    claimsPerS: Number((sum('claims') / seconds).toFixed(1)),
    seconds: Math.round(seconds),
  }
}

function startWorker(config) {
  const env = { ...process.env, HOLDFAST_LIVELOCK: JSON.stringify(config), HOLDFAST_TEST_DROP_TURNS_OF: 'poison-' }
  const child = fork(path.join(import.meta.dirname, 'worker.mjs'), { env })
  const gone = new Promise((_, reject) => child.once('exit', (code, signal) => reject(new Error(`a worker ended: ${code ?? signal}`))))
  gone.catch(() => {})
  const answer = () => Promise.race([new Promise((resolve) => child.once('message', resolve)), gone])
  return {
    child,
    ready: answer(),
    ask(order) {
      const answered = answer()
      child.send(order)
      return answered
    },
  }
}
