// Row "initTracing" and the log options: lines of user code with their fields, in a file or on stderr. One process has one
// log, so each case is a process of its own.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { databaseUrl, freshSchema } from '../support/world.mjs'

const program = fileURLToPath(new URL('./logger.cjs', import.meta.url))

/** Runs `logger.cjs` with a configuration; gives what it said, its file and its stderr. */
function log(t, config, env = {}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-log-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const file = path.join(folder, 'app.log')
  const tracing = config.tracing === undefined ? undefined : { logFile: file, ...config.tracing }
  const given = { url: databaseUrl(), schema: freshSchema(), ...config, tracing }
  const { RUST_LOG: _ours, ...rest } = process.env
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, JSON.stringify(given)], { encoding: 'utf8', env: { ...rest, ...env } })
  assert.equal(status, 0, stderr)
  const text = tracing === undefined ? '' : readFileSync(file, 'utf8')
  return { said: JSON.parse(stdout), text, stderr }
}

test('initTracing writes JSON lines with the fields of orchestration and activity', (t) => {
  const { text, stderr } = log(t, { tracing: { logFormat: 'json' }, options: { serviceName: 'shop', serviceVersion: '2' } })
  const lines = text.trim().split('\n').map((line) => JSON.parse(line))
  const of = (message) => lines.find((line) => line.fields.message === message)
  const { target, level, fields } = of('orchestration speaks')
  assert.deepEqual([target, level], ['holdfast::orchestration', 'INFO'])
  const { message: _text, ...rest } = fields
  assert.deepEqual(rest, {
    instance_id: 'logged',
    execution_id: 1,
    orchestration_name: 'talk',
    orchestration_version: '1.0.0',
    service_name: 'shop',
    service_version: '2',
  })
  const activity = of('activity speaks')
  assert.deepEqual([activity.target, activity.level], ['holdfast::activity', 'WARN'])
  assert.deepEqual([activity.fields.activity_name, activity.fields.activity_id, activity.fields.instance_id], ['speak', 2, 'logged'])
  assert.equal(typeof activity.fields.worker_id, 'string')
  assert.equal(of('activity details'), undefined)
  assert.doesNotMatch(stderr, /speaks/)
})

test('initTracing is silent in replay: each line is there once', (t) => {
  const { text } = log(t, { tracing: {}, options: { stickyCacheSize: 0 } })
  assert.equal(text.match(/orchestration speaks/g).length, 1)
})

test('initTracing obeys logLevel', (t) => {
  assert.match(log(t, { tracing: { logLevel: 'debug' } }).text, /activity details/)
  assert.doesNotMatch(log(t, { tracing: { logLevel: 'error' } }).text, /speaks/)
})

test('RUST_LOG replaces the levels', (t) => {
  const { text } = log(t, { tracing: { logLevel: 'error' } }, { RUST_LOG: 'holdfast::activity=debug' })
  assert.match(text, /activity details/)
  assert.doesNotMatch(text, /orchestration speaks/)
})

test('compact is one line for each record, pretty several, both with the fields', (t) => {
  const compact = log(t, { tracing: { logFormat: 'compact' } }).text
  assert.match(compact, /^.*orchestration speaks.*instance_id="?logged"?.*$/m)
  const pretty = log(t, { tracing: { logFormat: 'pretty' } }).text
  assert.ok(pretty.split('\n').length > compact.split('\n').length)
  assert.match(pretty, /orchestration speaks/)
})

test('initTracing names a file that cannot be opened', (t) => {
  const { said } = log(t, { refused: { logFile: '/no/such/folder/app.log' } })
  assert.match(said.refused, /^Failed to open log file '\/no\/such\/folder\/app\.log': /)
})

test('initTracing is refused a second time and after a runtime was started', (t) => {
  assert.match(log(t, { tracing: {}, again: true }).said.again, /^Failed to init tracing: /)
  assert.match(log(t, { again: true }).said.again, /^Failed to init tracing: /)
})

test('without initTracing the first runtime logs to stderr, as its options say', (t) => {
  const { stderr } = log(t, { options: { logFormat: 'json', logLevel: 'debug' } })
  const lines = stderr.trim().split('\n').map((line) => JSON.parse(line))
  assert.ok(lines.some((line) => line.fields.message === 'activity details'))
  assert.doesNotMatch(log(t, { options: { logLevel: 'warn' } }).stderr, /orchestration speaks/)
  assert.doesNotMatch(log(t, {}, { HOLDFAST_LOG_LEVEL: 'off' }).stderr, /speaks/)
})
