// What the server itself allows: the least rows that a workload can write, with set-based SQL from one small program.

import { now, session } from './costs.mjs'

const SECONDS = 4
const TEXT = JSON.stringify({ a: 1, b: 'small' })

/** Workloads that have one. */
export const LIMITS = ['workflow3', 'jobs', 'enqueue']

/** The limit of a workload in its unit; undefined where none is measured. */
export async function limitOf(workload, adminUrl) {
  const measure = { jobs: claimAndComplete, enqueue: insertMany, workflow3: threeSteps }[workload]
  if (measure === undefined) return undefined
  const admin = await session(adminUrl)
  const database = `bench_limit_${process.pid}`
  await admin.query(`create database ${database}`)
  const url = new URL(adminUrl)
  url.pathname = `/${database}`
  const db = await session(url.href)
  try {
    return Math.round(await measure(db))
  } finally {
    await db.end()
    await admin.query(`drop database ${database} with (force)`)
    await admin.end()
  }
}

/** Repeats `act`, which gives how much it did, for some seconds; the rate per second. */
async function rate(act) {
  let done = 0
  const from = now()
  while (now() - from < SECONDS * 1000) {
    const count = await act()
    if (count === 0) break
    done += count
  }
  return (done / (now() - from)) * 1000
}

/** Jobs claimed and deleted, 500 at a time, two commits. */
async function claimAndComplete(db) {
  await db.query('create table job (id bigint generated always as identity primary key, state int2 not null default 0, payload text not null) with (fillfactor = 70)')
  await db.query('create index job_ready on job (id) where state = 0')
  await db.query('insert into job (payload) select $1 from generate_series(1, 250000)', [TEXT])
  await db.query('vacuum analyze job')
  const claim = {
    name: 'claim',
    text: 'update job set state = 1 where id = any (array(select id from job where state = 0 order by id limit 500 for update skip locked)) returning id, payload',
  }
  return await rate(async () => {
    const { rows } = await db.query(claim)
    await db.query({ name: 'complete', text: 'delete from job where id = any ($1::bigint[])', values: [rows.map(({ id }) => id)] })
    return rows.length
  })
}

/** Rows inserted 1 000 in a statement. */
async function insertMany(db) {
  await db.query('create table job (id bigint generated always as identity primary key, payload text not null, at timestamptz not null default now())')
  const values = [Array(1000).fill(TEXT)]
  return await rate(async () => {
    await db.query({ name: 'insert', text: 'insert into job (payload) select p from unnest($1::text[]) p', values })
    return 1000
  })
}

/** Workflows of three steps, 64 at a time: a start, a history row and an update of the instance for each step. */
async function threeSteps(db) {
  await db.query('create table instance (id bigint primary key, step int not null, payload text) with (fillfactor = 60)')
  await db.query('create table history (id bigint not null, step int not null, payload text not null, at timestamptz not null default now(), primary key (id, step))')
  let next = 1
  const payloads = Array(64).fill(TEXT)
  const start = 'with i as (insert into instance (id, step, payload) select id, 0, p from unnest($1::bigint[], $2::text[]) x (id, p)) insert into history (id, step, payload) select id, 0, p from unnest($1::bigint[], $2::text[]) x (id, p)'
  const step = 'with h as (insert into history (id, step, payload) select id, $3::int, p from unnest($1::bigint[], $2::text[]) x (id, p)) update instance set step = $3::int from unnest($1::bigint[]) x (id) where instance.id = x.id'
  return await rate(async () => {
    const ids = Array.from({ length: 64 }, () => next++)
    await db.query({ name: 'start', text: start, values: [ids, payloads] })
    for (let i = 1; i <= 3; i++) await db.query({ name: 'step', text: step, values: [ids, payloads, i] })
    return ids.length
  })
}
