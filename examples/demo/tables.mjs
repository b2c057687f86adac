// The demo's tables, beside the engine's own, so that its claims can be checked with SQL:
//   demo.files     the index: one row per file, written by the last step under its idempotency key
//   demo.attempts  the ledger: one row per start of a step, written before the step does anything

const SCHEMA = `
create schema if not exists demo;
create table if not exists demo.files (
  key text primary key, run text not null, instance text not null, path text not null, kind text not null,
  bytes bigint, packed bigint, sha256 text, worker text not null, indexed_at timestamptz not null default clock_timestamp()
);
create table if not exists demo.attempts (
  id bigint generated always as identity primary key, run text not null, instance text not null, step text not null, key text not null,
  worker text not null, delivery int not null, started_at timestamptz not null default clock_timestamp()
);
create index if not exists attempts_run_key_idx on demo.attempts (run, key);
create index if not exists files_run_instance_idx on demo.files (run, instance);`

/** Makes the tables where they are missing. */
export async function makeTables(db) {
  await db.query(SCHEMA)
}

/** Notes that a step starts. */
export async function noteAttempt(db, { run, instance, step, key, worker, delivery }) {
  await db.query(
    'insert into demo.attempts (run, instance, step, key, worker, delivery) values ($1, $2, $3, $4, $5, $6)',
    [run, instance, step, key, worker, delivery],
  )
}

/** Adds a file to the index. The key makes a repetition harmless: the row is there already. */
export async function addFile(db, { key, run, instance, path, kind, bytes, packed, sha256, worker }) {
  await db.query(
    `insert into demo.files (key, run, instance, path, kind, bytes, packed, sha256, worker) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (key) do nothing`,
    [key, run, instance, path, kind, bytes ?? null, packed ?? null, sha256 ?? null, worker],
  )
}

/** How many files of a run are in the index. */
export async function countIndexed(db, run) {
  const { rows } = await db.query('select count(*)::int as n from demo.files where run = $1', [run])
  return rows[0].n
}

/**
 * The figures of a run: `steps` distinct steps, `repeated` starts beyond a step's first, `indexed` files in the index,
 * `doubled` rows beyond a file's first, and `workers` by which steps were started.
 */
export async function figures(db, run) {
  const attempts = await db.query(
    'select count(distinct key)::int as steps, (count(*) - count(distinct key))::int as repeated, count(distinct worker)::int as workers from demo.attempts where run = $1',
    [run],
  )
  const files = await db.query(
    'select count(distinct instance)::int as indexed, (count(*) - count(distinct instance))::int as doubled from demo.files where run = $1',
    [run],
  )
  return { ...attempts.rows[0], ...files.rows[0] }
}
