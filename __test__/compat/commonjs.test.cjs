// The package as a CommonJS program written for the duroxide API uses it: one require, generators, plain objects.
const assert = require('node:assert/strict')
const { randomUUID } = require('node:crypto')
const { after, before, describe, test } = require('node:test')

const holdfast = require('../../index.js')
const { Client, PostgresProvider, Runtime, SqliteProvider } = holdfast

const EXPORTS = [
  'SqliteProvider', 'PostgresProvider', 'Client', 'Runtime', 'OrchestrationContext', 'ActivityContext', 'initTracing',
  'MAX_WORKER_TAGS', 'MAX_TAG_NAME_BYTES', 'MAX_KV_KEYS', 'MAX_KV_VALUE_BYTES',
]

/** Every method of the classes, as the tables list them. */
const METHODS = {
  Client: [
    'startOrchestration', 'startOrchestrationVersioned', 'getStatus', 'waitForOrchestration', 'waitForOrchestrationTyped',
    'cancelInstance', 'raiseEvent', 'enqueueEvent', 'getValue', 'waitForValue', 'getKvAllValues', 'waitForStatusChange',
    'getSystemMetrics', 'getOrchestrationStats', 'getQueueDepths', 'startOrchestrationTyped', 'startOrchestrationVersionedTyped',
    'raiseEventTyped', 'enqueueEventTyped', 'listAllInstances', 'listInstancesByStatus', 'getInstanceInfo', 'getExecutionInfo',
    'listExecutions', 'readExecutionHistory', 'getInstanceTree', 'deleteInstance', 'deleteInstanceBulk', 'pruneExecutions',
    'pruneExecutionsBulk', 'cancelOrchestration', 'getOrchestrationStatus',
  ],
  Runtime: [
    'registerActivity', 'registerOrchestration', 'registerOrchestrationVersioned', 'registerActivityTyped',
    'registerOrchestrationTyped', 'registerOrchestrationVersionedTyped', 'start', 'shutdown', 'metricsSnapshot',
  ],
  OrchestrationContext: [
    'scheduleActivity', 'scheduleActivityOnSession', 'scheduleActivityWithRetry', 'scheduleActivityWithRetryOnSession',
    'scheduleTimer', 'waitForEvent', 'dequeueEvent', 'getValueFromInstance', 'scheduleSubOrchestration',
    'scheduleSubOrchestrationWithId', 'scheduleSubOrchestrationVersioned', 'scheduleSubOrchestrationVersionedWithId',
    'startOrchestration', 'startOrchestrationVersioned', 'newGuid', 'utcNow', 'continueAsNew', 'continueAsNewVersioned', 'all',
    'race', 'scheduleActivityTyped', 'scheduleActivityOnSessionTyped', 'scheduleActivityWithRetryTyped',
    'scheduleActivityWithRetryOnSessionTyped', 'scheduleSubOrchestrationTyped', 'scheduleSubOrchestrationWithIdTyped',
    'waitForEventTyped', 'dequeueEventTyped', 'allTyped', 'raceTyped', 'startOrchestrationTyped', 'startOrchestrationVersionedTyped',
    'continueAsNewTyped', 'setCustomStatus', 'resetCustomStatus', 'getCustomStatus', 'setValue', 'getValue', 'clearValue',
    'clearAllValues', 'getKvAllValues', 'getKvAllKeys', 'getKvLength', 'pruneKvValuesUpdatedBefore', 'traceInfo', 'traceWarn',
    'traceError', 'traceDebug',
  ],
  ActivityContext: ['tag', 'traceInfo', 'traceWarn', 'traceError', 'traceDebug', 'isCancelled', 'getClient'],
}

test('every export is there, and the constants have their values', () => {
  for (const name of EXPORTS) assert.notEqual(holdfast[name], undefined, name)
  const { MAX_WORKER_TAGS, MAX_TAG_NAME_BYTES, MAX_KV_KEYS, MAX_KV_VALUE_BYTES } = holdfast
  assert.deepEqual([MAX_WORKER_TAGS, MAX_TAG_NAME_BYTES, MAX_KV_KEYS, MAX_KV_VALUE_BYTES], [5, 256, 150, 65_536])
})

for (const [type, methods] of Object.entries(METHODS)) {
  test(`${type} has every method of its table`, () => {
    for (const method of methods) assert.equal(typeof holdfast[type].prototype[method], 'function', `${type}.${method}`)
  })
}

for (const [name, open] of [
  ['PostgresProvider', () => PostgresProvider.connectWithSchema(process.env.HOLDFAST_TEST_DATABASE_URL, `t_${randomUUID().slice(0, 8)}`)],
  ['SqliteProvider', () => SqliteProvider.inMemory()],
]) {
  describe(`a program on ${name}`, () => {
    let provider
    let client
    let runtime

    before(async () => {
      provider = await open()
      client = new Client(provider)
      runtime = new Runtime(provider, { dispatcherPollIntervalMs: 50, workerLockTimeoutMs: 2000, logLevel: 'error' })
      runtime.registerActivity('Hello', async (ctx, name) => {
        ctx.traceInfo(`greeting ${name}`)
        return `Hello, ${name}!`
      })
      runtime.registerActivity('Fail', async () => {
        throw new Error('intentional failure')
      })
      runtime.registerOrchestration('HelloWorld', function* (ctx, input) {
        ctx.traceInfo('started')
        return yield ctx.scheduleActivity('Hello', input)
      })
      runtime.registerOrchestration('FanOut', function* (ctx, names) {
        const results = yield ctx.all(names.map((name) => ctx.scheduleActivity('Hello', name)))
        return results.map((result) => result.ok)
      })
      runtime.registerOrchestration('Compensate', function* (ctx) {
        try {
          yield ctx.scheduleActivity('Fail')
        } catch (error) {
          return `caught: ${error.message}`
        }
      })
      runtime.registerOrchestration('Approval', function* (ctx) {
        const winner = yield ctx.race(ctx.waitForEvent('approval'), ctx.scheduleTimer(60_000))
        return winner.index === 0 ? winner.value : 'timeout'
      })
      runtime.registerOrchestration('Counter', function* (ctx, n) {
        ctx.setCustomStatus(`at ${n}`)
        if (n < 3) {
          yield ctx.continueAsNew(n + 1)
          return
        }
        return n
      })
      runtime.registerOrchestration('Chat', function* (ctx) {
        const said = []
        for (;;) {
          const message = yield ctx.dequeueEvent('inbox')
          if (message === 'bye') return said
          said.push(message)
          ctx.setValue('last', message)
        }
      })
      await runtime.start()
    })

    after(async () => {
      await runtime.shutdown(100)
      await provider.close()
    })

    test('runs steps one after the other and side by side', async () => {
      await client.startOrchestration('hello', 'HelloWorld', 'World')
      const result = await client.waitForOrchestration('hello', 10_000)
      assert.equal(result.status, 'Completed')
      assert.equal(result.output, 'Hello, World!')
      await client.startOrchestration('fan', 'FanOut', ['a', 'b', 'c'])
      assert.deepEqual((await client.waitForOrchestration('fan', 10_000)).output, ['Hello, a!', 'Hello, b!', 'Hello, c!'])
    })

    test('catches the failure of a step', async () => {
      await client.startOrchestration('compensate', 'Compensate')
      assert.match((await client.waitForOrchestration('compensate', 10_000)).output, /^caught: .*intentional failure/)
    })

    test('waits for events and queues', async () => {
      await client.startOrchestration('approval', 'Approval')
      await client.raiseEvent('approval', 'approval', { by: 'me' })
      assert.deepEqual((await client.waitForOrchestration('approval', 10_000)).output, { by: 'me' })
      await client.startOrchestration('chat', 'Chat')
      for (const message of ['one', 'two', 'bye']) await client.enqueueEvent('chat', 'inbox', message)
      assert.deepEqual((await client.waitForOrchestration('chat', 10_000)).output, ['one', 'two'])
      assert.equal(await client.waitForValue('chat', 'last', 1000), 'two')
    })

    test('continues as new and cancels', async () => {
      await client.startOrchestration('counter', 'Counter', 0)
      const { output, customStatus } = await client.waitForOrchestration('counter', 10_000)
      assert.deepEqual([output, customStatus], [3, 'at 3'])
      assert.deepEqual(await client.listExecutions('counter'), [1, 2, 3, 4])
      await client.startOrchestration('cancelled', 'Approval')
      await client.cancelInstance('cancelled', 'no longer needed')
      const cancelled = await client.waitForOrchestration('cancelled', 10_000)
      assert.equal(cancelled.status, 'Failed')
      assert.match(cancelled.error, /canceled: no longer needed/)
    })
  })
}
