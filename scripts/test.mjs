// npm test: builds, starts a PostgreSQL, runs the Rust tests, the JavaScript tests and the checks, and says at the end
// which real parts it did without. With CI=true a part that is missing is a failure.
//
//   npm test -- --only rust|js|checks   one part (may be given several times)
//   HOLDFAST_PROFILE=release            an optimised addon (the default here is unoptimised: it is there sooner)
//
// Everything it starts ends with it, also on Ctrl-C; it ends nothing else.

import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'

import { check } from './check.mjs'
import { countTests } from './lib/counts.mjs'
import { findPgBouncer, findSecondServer, startPgBouncer } from './lib/parts.mjs'
import { ask, onStop, root, run, title } from './lib/run.mjs'
import { refine } from './refine.mjs'
import { simulate } from './sim.mjs'

const PARTS = ['rust', 'js', 'checks']
const ci = process.env.CI === 'true'
const started = Date.now()
const results = []
const unused = []
const stops = []

function wanted() {
  const args = process.argv.slice(2)
  const only = args.flatMap((arg, index) => (arg === '--only' ? [args[index + 1]] : []))
  const odd = args.filter((arg, index) => arg !== '--only' && args[index - 1] !== '--only')
  if (odd.length > 0 || only.some((part) => !PARTS.includes(part))) {
    console.error(`usage: npm test -- [--only ${PARTS.join('|')}]...`)
    process.exit(2)
  }
  return new Set(only.length > 0 ? only : PARTS)
}

async function step(name, act) {
  title(name)
  const from = Date.now()
  const { code, output = '' } = await act()
  const counts = countTests(output)
  if (code !== 0 && counts.failed === 0) counts.failed = 1
  results.push({ name, ok: code === 0, seconds: Math.round((Date.now() - from) / 1000), ...counts })
  return code === 0
}

function keepStop(part) {
  stops.push(part.stop)
  onStop(part.stop)
  return part
}

async function startServer(options) {
  const { startTestServer } = await import('./lib/server.mjs')
  return keepStop(await startTestServer(options))
}

/** The parts that this machine has, started: `{ env, second }`. */
async function startParts() {
  const server = await startServer({})
  console.log(`PostgreSQL ${server.version}`)
  const env = { HOLDFAST_TEST_DATABASE_URL: server.url }
  const found = findSecondServer(server.version)
  const second = found && { ...found, ...(await startServer({ binDir: found.binDir })) }
  if (second) console.log(`PostgreSQL ${second.version}, a second version`)
  else unused.push('a second PostgreSQL version (Debian: postgresql)')
  const pooler = findPgBouncer()
  if (pooler) {
    env.HOLDFAST_TEST_POOLER_URL = keepStop(await startPgBouncer(pooler, server.url)).url
    console.log('PgBouncer, transaction mode')
  } else {
    unused.push('PgBouncer (Debian: pgbouncer)')
  }
  return { env, second }
}

function rustTests(env, selection) {
  const nextest = ask('cargo', ['nextest', '--version']) !== null
  const runner = nextest ? ['nextest', 'run', '--no-fail-fast'] : ['test', '--no-fail-fast']
  return run('cargo', [...runner, ...selection], { env, keep: true })
}

async function rust({ env, second }) {
  await step('Rust tests', () => rustTests(env, ['--workspace']))
  await step('Rust examples in documentation', () =>
    run('cargo', ['test', '--doc', '--quiet', '-p', 'holdfast-core', '-p', 'holdfast-replay'], { env, keep: true }))
  await step('Simulation, 2 000 seeds', () => simulate(['--seeds', '2000'], { keep: true }))
  await step('Refinement, 400 lists', () => refine(['--lists', '400', '--mutants'], env.HOLDFAST_TEST_DATABASE_URL, { keep: true }))
  if (second && existsSync(path.join(root, 'crates/holdfast-core/tests/it/main.rs'))) {
    const there = { HOLDFAST_TEST_DATABASE_URL: second.url }
    await step(`Rust tests of the engine on PostgreSQL ${second.version}`, () =>
      rustTests(there, ['-p', 'holdfast-core', '--test', 'it']))
  }
}

function javascript({ env }) {
  const folder = path.join(root, '__test__')
  const files = readdirSync(folder, { recursive: true })
    .filter((file) => /\.test\.(mjs|cjs|js)$/.test(file))
    .sort()
    .map((file) => path.join('__test__', file))
  const flags = ['--test', '--test-concurrency=2', '--test-reporter=spec']
  return step('JavaScript tests', () => run(process.execPath, [...flags, ...files], { env, keep: true }))
}

async function checks() {
  const { passed, failed } = await check()
  results.push({ name: 'checks', ok: failed.length === 0, passed: passed.length, failed: failed.length, note: failed.join(', ') })
}

function report() {
  title('result')
  for (const { name, ok, passed, failed, seconds, note } of results) {
    const time = seconds === undefined ? '' : `, ${seconds} s`
    console.log(`${ok ? 'ok    ' : 'FAILED'} ${name}: ${passed} passed, ${failed} failed${time}${note ? ` (${note})` : ''}`)
  }
  console.log(`total time: ${Math.round((Date.now() - started) / 1000)} s`)
  if (unused.length > 0) {
    console.log(`real parts not used${ci ? ', which is a failure with CI=true' : ''}:`)
    for (const part of unused) console.log(`  ${part}`)
  } else {
    console.log('real parts not used: none')
  }
  const sum = (key) => results.reduce((total, result) => total + result[key], 0)
  console.log(`${sum('passed')} passed, ${sum('failed')} failed`)
  const good = results.every((result) => result.ok) && (unused.length === 0 || !ci)
  process.exitCode = good ? 0 : 1
}

const parts = wanted()
const env = { HOLDFAST_PROFILE: process.env.HOLDFAST_PROFILE ?? 'dev' }
const build = await run(process.execPath, [path.join(root, 'scripts/build.mjs')], { env })
if (build.code !== 0) process.exit(1)
try {
  if (parts.has('rust') || parts.has('js')) {
    title('real parts')
    const real = await startParts()
    if (parts.has('rust')) await rust(real)
    if (parts.has('js')) await javascript(real)
  }
  if (parts.has('checks')) await checks()
} finally {
  for (const stop of stops.reverse()) await stop()
}
report()
