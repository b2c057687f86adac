// Options: refused by name with value and rule; the environment fills in what the argument leaves open.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { fakeProvider, holdfast } from '../support/app.mjs'

const { checkRuntimeOptions, checkPoolOptions } = createRequire(import.meta.url)('../../dist/cjs/options.js')
const runtime = (options, environment = {}) => checkRuntimeOptions(options, environment)
const pool = (options, environment = {}) => checkPoolOptions(options, environment)
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
  refused(() => pool({ maxClients: 33 }), /maxClients: 33 .*from 1 to 32/)
  refused(() => pool({ migrate: 'never' }), /migrate.*"apply", "verify"/)
  refused(() => pool({ pooled: 'maybe' }), /pooled: "maybe".*"auto", true, false/)
})

test('impossible combinations are refused, also when one side is the default', () => {
  refused(() => runtime({ heartbeatIntervalMs: 10_000 }), /staleAfterMs: 30000 .*at least four times heartbeatIntervalMs \(10000\)/)
  refused(() => runtime({ staleAfterMs: 10_000 }), /staleAfterMs: 10000/)
  refused(() => runtime({ retryBackoffBaseMs: '2m' }), /retryBackoffBaseMs: 120000 .*at most retryBackoffMaxMs \(60000\)/)
  refused(() => runtime({ workerLockTimeoutMs: 20_000, workerLockRenewalBufferMs: 20_000 }), /workerLockRenewalBufferMs: 20000 .*less than workerLockTimeoutMs/)
  refused(() => pool({ retryBaseDelayMs: 5000 }), /retryBaseDelayMs: 5000/)
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
  new holdfast.Runtime(provider, { maxAttempts: 4, staleAfterMs: '40s' })
  assert.deepEqual(log.options, { maxAttempts: 4, staleAfterMs: 40_000 })
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
