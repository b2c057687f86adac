// Options: refused by name with value and rule; the environment fills in what the argument leaves open.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
import { availableParallelism, hostname } from 'node:os'
import { test } from 'node:test'
import { fakeProvider, holdfast } from '../support/app.mjs'

const require = createRequire(import.meta.url)
const { checkRuntimeOptions, checkPoolOptions } = require('../../dist/cjs/option-check.js')
const { resolveRuntimeOptions, resolvePoolOptions } = require('../../dist/cjs/options-in-force.js')
const { useBinding } = require('../../dist/cjs/native.js')
const runtime = (options, environment = {}) => checkRuntimeOptions(options, environment).options
const pool = (options, environment = {}) => checkPoolOptions(options, environment).options
/** With the engine's own rules and defaults. */
const inForce = (options) => (useBinding(undefined), resolveRuntimeOptions(options).shown)
const poolInForce = (options) => (useBinding(undefined), resolvePoolOptions(options).shown)
/** Names of one table of the TypeScript side. */
function holdfastTable(name) {
  const source = readFileSync(new URL('../../sdk/option-check.ts', import.meta.url), 'utf8')
  const body = source.split(`const ${name}:`)[1].split('\n}\n')[0]
  return Object.fromEntries([...body.matchAll(/^ {2}(\w+):/gm)].map(([, key]) => [key, true]))
}

const refused = (act, text) =>
  assert.throws(act, (error) => {
    assert.ok(error instanceof holdfast.HoldfastError)
    assert.equal(error.code, 'INVALID_OPTION')
    assert.match(error.message, text)
    return true
  })

test('what is not given stays away: the engine has the defaults', () => {
  assert.deepEqual(runtime(undefined), {})
  assert.deepEqual(runtime({ maxAttempts: undefined }), {})
  assert.deepEqual(pool({}), {})
})

test('times are numbers of ms or texts with a unit', () => {
  const { workerLockTimeoutMs, staleAfterMs, heartbeatIntervalMs, activityTimeoutMs, dispatcherPollIntervalMs } = runtime({
    workerLockTimeoutMs: '30s',
    staleAfterMs: '2m',
    heartbeatIntervalMs: 500,
    activityTimeoutMs: '1.5h',
    dispatcherPollIntervalMs: '250ms',
  })
  assert.deepEqual([workerLockTimeoutMs, staleAfterMs, heartbeatIntervalMs, activityTimeoutMs, dispatcherPollIntervalMs], [30_000, 120_000, 500, 5_400_000, 250])
})

test('the guide’s name of the poll interval is an alias', () => {
  assert.deepEqual(runtime({ dispatcherPollInterval: 50 }), { dispatcherPollIntervalMs: 50 })
})

test('an unknown option is refused, with the near one', () => {
  refused(() => runtime({ workerLockTimeout: 5 }), /unknown option 'workerLockTimeout'; did you mean 'workerLockTimeoutMs'\?/)
  refused(() => runtime({ MAXATTEMPTS: 5 }), /did you mean 'maxAttempts'/)
  refused(() => pool({ size: 5 }), /^unknown option 'size'$/)
  refused(() => runtime({ dispatcherPolIntervalMs: 1 }), /did you mean 'dispatcherPollIntervalMs'/)
  refused(() => runtime({ maxClients: 5 }), /^unknown option 'maxClients'; it is one of PostgresProvider/)
  refused(() => pool({ workerConcurrency: 5 }), /it is one of new Runtime/)
  refused(() => runtime({ constructor: 1 }), /unknown option 'constructor'/)
  refused(() => runtime([1]), /runtime options: an array is not allowed/)
})

test('wrong types, negative, fractional and non-finite numbers are refused with value and rule', () => {
  refused(() => runtime({ maxAttempts: 0 }), /invalid option maxAttempts: 0 is not allowed; it must be a whole number from 1/)
  for (const value of [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '5', true, {}, [], 5n, 2 ** 40]) {
    refused(() => runtime({ workerConcurrency: value }), /invalid option workerConcurrency: /)
  }
  for (const value of ['soon', '5', '5 weeks', '-5s', -5, Number.NaN]) refused(() => runtime({ staleAfterMs: value }), /staleAfterMs.*'30s'/)
  refused(() => runtime({ workerNodeId: '' }), /workerNodeId.*non-empty string/)
  refused(() => poolInForce({ maxClients: 33 }), /maxClients: 33 .*at most 32.*scale replicas/)
  refused(() => pool({ migrate: 'never' }), /migrate.*"apply", "verify"/)
  refused(() => pool({ pooled: 'maybe' }), /pooled: "maybe".*"auto", true, false/)
})

test('impossible combinations are refused, also when one side is the default', () => {
  refused(() => inForce({ heartbeatIntervalMs: 10_000 }), /staleAfterMs: 30000 .*at least four times heartbeatIntervalMs \(10000\)/)
  refused(() => inForce({ staleAfterMs: 10_000 }), /staleAfterMs: 10000/)
  refused(() => inForce({ retryBackoffBaseMs: '2m' }), /retryBackoffBaseMs: 120000 .*at most retryBackoffMaxMs \(60000\)/)
  refused(() => inForce({ unregisteredBackoffMaxMs: 10 }), /unregisteredBackoffBaseMs: 1000 .*at most unregisteredBackoffMaxMs \(10\)/)
  refused(() => inForce({ workerLockTimeoutMs: 20_000, workerLockRenewalBufferMs: 20_000 }), /workerLockRenewalBufferMs: 20000 .*less than workerLockTimeoutMs/)
  refused(() => inForce({ sessionIdleTimeoutMs: 1000 }), /sessionIdleTimeoutMs: 1000 .*longer than .*workerLockTimeoutMs/)
  refused(() => inForce({ selfFenceMarginMs: 25_000 }), /selfFenceMarginMs: 25000 .*less than staleAfterMs minus heartbeatIntervalMs/)
  refused(() => inForce({ eventLoopStallTimeoutMs: '3m' }), /eventLoopStallTimeoutMs: 180000 .*less than eventLoopHangTimeoutMs \(120000\)/)
  refused(() => poolInForce({ retryBaseDelayMs: 5000 }), /retryBaseDelayMs: 5000 .*at most retryMaxDelayMs \(1000\)/)
  refused(() => poolInForce({ applicationName: 'x'.repeat(49) }), /applicationName.*1 to 48 bytes/)
})

test('a filter given as argument leaves the environment’s list alone, and is shown whole', () => {
  assert.deepEqual(runtime({ workerTagFilter: 'none' }, { HOLDFAST_WORKER_TAG_FILTER_TAGS: 'gpu' }), { workerTagFilter: 'none' })
  for (const filter of ['defaultOnly', 'any', 'none', { tags: ['gpu'] }, { defaultAnd: ['gpu', 'tpu'] }]) {
    assert.deepEqual(inForce({ workerTagFilter: filter }).workerTagFilter, { value: filter, source: 'argument' })
  }
})

test('a range of versions is an object, as JSON in the environment', () => {
  const versions = (options, environment) => runtime(options, environment).supportedReplayVersions
  assert.deepEqual(versions({ supportedReplayVersions: { min: '0.1.0' } }), { min: '0.1.0' })
  assert.deepEqual(versions({}, { HOLDFAST_SUPPORTED_REPLAY_VERSIONS: '{"max":"1.0.0"}' }), { max: '1.0.0' })
  refused(() => versions({}, { HOLDFAST_SUPPORTED_REPLAY_VERSIONS: '1.0.0' }), /supportedReplayVersions: "1.0.0" .*JSON \(from HOLDFAST_SUPPORTED_REPLAY_VERSIONS\)/)
  refused(() => versions({ supportedReplayVersions: { from: '1.0.0' } }), /an object with 'from'/)
  refused(() => versions({ supportedReplayVersions: { max: '1.0' } }), /supportedReplayVersions.max: "1.0" .*'1.2.0'/)
  refused(() => inForce({ supportedReplayVersions: { min: '99.0.0' } }), /supportedReplayVersions: 99.0.0 to .*min that is at most max/)
})

test('every option in force has its value and its source', (t) => {
  process.env.HOLDFAST_MAX_ATTEMPTS = '3'
  process.env.HOLDFAST_POOL_MAX_CLIENTS = '4'
  t.after(() => {
    delete process.env.HOLDFAST_MAX_ATTEMPTS
    delete process.env.HOLDFAST_POOL_MAX_CLIENTS
  })
  const all = inForce({ staleAfterMs: '1m' })
  assert.deepEqual(all.staleAfterMs, { value: 60_000, source: 'argument' })
  assert.deepEqual(all.maxAttempts, { value: 3, source: 'environment' })
  assert.deepEqual(all.heartbeatIntervalMs, { value: 5000, source: 'default' })
  assert.deepEqual(all.selfFenceMarginMs, { value: 10_000, source: 'default' })
  assert.deepEqual(all.activityTimeoutMs, { value: null, source: 'default' })
  assert.match(all.workerNodeId.value, /-\d+$/)
  const known = Object.keys(holdfastTable('RUNTIME'))
  assert.deepEqual(Object.keys(all).sort(), known.sort())

  const pooled = poolInForce({ pooled: true, directUrl: 'postgres://u:sec%40ret@direct:5432/db?password=sec' })
  assert.deepEqual(pooled.maxClients, { value: 4, source: 'environment' })
  assert.deepEqual(pooled.pooled, { value: true, source: 'argument' })
  assert.deepEqual(pooled.migrate, { value: 'apply', source: 'default' })
  assert.deepEqual(pooled.directUrl, { value: 'postgres://direct:5432/db', source: 'argument' })
  assert.deepEqual(Object.keys(pooled).sort(), Object.keys(holdfastTable('POOL')).sort())
})

test('what is wrong with a variable names the variable', (t) => {
  refused(() => runtime({}, { HOLDFAST_WORKER_CONCURRENCY: '-4' }), /workerConcurrency: -4 .*\(from HOLDFAST_WORKER_CONCURRENCY\)/)
  process.env.HOLDFAST_STALE_AFTER_MS = '6s'
  t.after(() => delete process.env.HOLDFAST_STALE_AFTER_MS)
  refused(() => inForce({}), /staleAfterMs: 6000 .*\(from HOLDFAST_STALE_AFTER_MS\)/)
})

test('below 15 s the renewal buffer is ignored, and every lease of a ms or more is accepted', () => {
  assert.deepEqual(runtime({ workerLockTimeoutMs: 1, orchestratorLockTimeoutMs: 1 }), { orchestratorLockTimeoutMs: 1, workerLockTimeoutMs: 1 })
})

test('the environment fills in; the argument wins; blank is unset', () => {
  const environment = {
    HOLDFAST_ORCHESTRATOR_LOCK_TIMEOUT_MS: '7s',
    HOLDFAST_WORKER_CONCURRENCY: ' 12 ',
    HOLDFAST_MAX_ATTEMPTS: '3',
    HOLDFAST_WORKER_NODE_ID: '17',
    HOLDFAST_STICKY_CACHE_SIZE: '  ',
  }
  assert.deepEqual(runtime({ maxAttempts: 5 }, environment), { workerConcurrency: 12, orchestratorLockTimeoutMs: 7000, maxAttempts: 5, workerNodeId: '17' })
  refused(() => runtime({}, { HOLDFAST_MAX_ATTEMPTS: 'many' }), /maxAttempts: "many"/)
  const variables = { HOLDFAST_POOL_MAX_CLIENTS: '4', HOLDFAST_DIRECT_URL: 'postgres://direct', HOLDFAST_POOL_POOLED: 'true' }
  assert.deepEqual(pool({}, variables), { maxClients: 4, pooled: 'true', directUrl: 'postgres://direct' })
})

test('a password in a URL option is not shown', () => {
  assert.throws(() => pool({ directUrl: 'postgres://u:secret@h/\0' }), (error) => !error.message.includes('secret'))
})

test('new Runtime refuses at once and passes the checked options on', async () => {
  const { provider, log } = await fakeProvider()
  refused(() => new holdfast.Runtime(provider, { maxAttempts: -1 }), /maxAttempts: -1/)
  const made = new holdfast.Runtime(provider, { maxAttempts: 4, staleAfterMs: '40s' })
  assert.deepEqual(log.options, { maxAttempts: 4, staleAfterMs: 40_000 })
  assert.deepEqual(made.options().maxAttempts, { value: 4, source: 'argument' })
})

test('the tag filter has several shapes, and its list a rule', () => {
  assert.deepEqual(runtime({ workerTagFilter: 'any' }), { workerTagFilter: 'any' })
  const named = { workerTagFilter: 'defaultAnd', workerTagFilterTags: ['a', 'b'] }
  assert.deepEqual(runtime({ workerTagFilter: { defaultAnd: ['a', 'b', 'a'] } }), named)
  assert.deepEqual(runtime({}, { HOLDFAST_WORKER_TAG_FILTER: 'defaultAnd', HOLDFAST_WORKER_TAG_FILTER_TAGS: 'a, b' }), named)
  assert.deepEqual(runtime({}, { HOLDFAST_WORKER_TAG_FILTER: '{"defaultAnd":["a","b"]}' }), named)
  refused(() => runtime({ workerTagFilter: 'all' }), /workerTagFilter: "all".*one of "defaultOnly"/)
  refused(() => runtime({ workerTagFilter: { tags: [] } }), /workerTagFilter: an array.*1 to 5 tags/)
  refused(() => runtime({ workerTagFilter: 'tags' }), /workerTagFilterTags: undefined.*1 to 5 tags/)
  refused(() => runtime({ workerTagFilter: { tags: ['x'.repeat(257)] } }), /256 bytes/)
  refused(() => runtime({ workerTagFilter: 'any', workerTagFilterTags: ['a'] }), /workerTagFilterTags.*absent/)
  refused(() => runtime({ workerTagFilterTags: ['a'] }), /workerTagFilterTags.*only with/)
})

/** What a text about a default means; the machine and the other options say the rest. */
function meant(text) {
  const units = { ms: 1, s: 1000, min: 60_000, day: 86_400_000, MiB: 2 ** 20, '': 1 }
  const [, digits, unit] = /^([\d ]*\d)(?: (ms|s|min|day|MiB))?$/.exec(text) ?? []
  if (digits !== undefined) return Number(digits.replaceAll(' ', '')) * units[unit ?? '']
  const quoted = /^`'(\w+)'`/.exec(text)
  if (quoted) return quoted[1]
  const cores = availableParallelism()
  const words = {
    none: null,
    'derived from the URL': null,
    'twice the cores, at least 4': Math.max(4, 2 * cores),
    'four times the cores, at least 8': Math.max(8, 4 * cores),
    'host name and process id': `${hostname()}-${process.pid}`,
    'two heartbeat intervals': 10_000,
    'up to this version': { min: '0.0.0', max: JSON.parse(readFileSync(new URL('../../package.json', import.meta.url))).version },
  }
  assert.ok(text in words, `nobody knows what the default '${text}' means`)
  return words[text]
}

test('the texts about defaults say what the engine does', () => {
  const source = readFileSync(new URL('../../sdk/options.ts', import.meta.url), 'utf8')
  const all = { JsRuntimeOptions: inForce({}), JsPoolOptions: poolInForce({}) }
  for (const [name, options] of Object.entries(all)) {
    const body = source.split(`export interface ${name} {`)[1].split('\n}\n')[0]
    const told = [...body.matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\/\s+(\w+)\?:/g)]
    const seen = told.map(([, comment, option]) => {
      const [, text] = /Default: ((?:(?!\.(?:\s|$))[^])*)\./.exec(comment) ?? []
      // A text without a default is about an option that belongs to another one.
      const { value } = options[option]
      const none = Array.isArray(value) && value.length === 0
      if (text !== undefined) assert.deepEqual(none ? null : value, meant(text), `${option}: ${text}`)
      return option
    })
    assert.deepEqual(seen.sort(), Object.keys(options).sort())
  }
})
