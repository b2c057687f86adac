// The client, as a user has it: start, wait, status, raise, enqueue, cancel, history, handles.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeProvider, holdfast, runOnce, startApp } from '../support/app.mjs'

const { HoldfastError } = holdfast

test('start tells whether the instance is new and leaves a running one alone', async (t) => {
  const { client } = await startApp(t, { orchestrations: { main: async (ctx) => await ctx.waitForEvent('e') } })
  assert.deepEqual(await client.startOrchestration('one', 'main', { a: 1 }), { created: true })
  assert.deepEqual(await client.startOrchestration('one', 'main', { a: 1 }), { created: false })
  assert.deepEqual(await client.startOrchestration('one', 'other', 5), { created: false })
  const handle = await client.start('main', { a: 1 }, { id: 'one' })
  assert.equal(handle.id, 'one')
  await assert.rejects(client.start('main', { a: 2 }, { id: 'one' }), (error) => error instanceof holdfast.InstanceExistsError && error.code === 'INSTANCE_EXISTS')
})

test('status goes from NotFound over Running to Completed; the output is JSON text there and parsed in the result', async (t) => {
  const { provider } = await fakeProvider()
  const client = new holdfast.Client(provider)
  assert.deepEqual(await client.getStatus('one'), { status: 'NotFound', customStatusVersion: 0 })
  await client.startOrchestration('one', 'main')
  assert.equal((await client.getStatus('one')).status, 'NotFound')
  const runtime = new holdfast.Runtime(provider)
  runtime.registerOrchestration('main', async (ctx) => {
    ctx.setCustomStatus('waiting')
    const first = await ctx.waitForEvent('first')
    return { got: [first, await ctx.waitForEvent('e')] }
  })
  await runtime.start()
  t.after(() => runtime.shutdown())
  await client.raiseEvent('one', 'first', 0)
  await assert.rejects(client.waitForOrchestration('one', 20), /timed out/)
  assert.equal((await client.getStatus('one')).status, 'Running')
  assert.deepEqual(await client.raiseEvent('one', 'e', [1, null]), { accepted: true })
  const result = await client.waitForOrchestration('one')
  assert.deepEqual(result, { status: 'Completed', customStatus: 'waiting', customStatusVersion: 1, output: { got: [0, [1, null]] } })
  assert.deepEqual(await client.getStatus('one'), { status: 'Completed', customStatus: 'waiting', customStatusVersion: 1, output: '{"got":[0,[1,null]]}' })
  assert.deepEqual(await client.waitForOrchestrationTyped('one'), { got: [0, [1, null]] })
  assert.deepEqual(await client.raiseEvent('one', 'e'), { accepted: false })
})

test('a null output is null', async (t) => {
  const { client, result } = await runOnce(t, async () => undefined)
  assert.equal(result.output, null)
  assert.equal((await client.getStatus('one')).output, 'null')
})

test('waiting for too long rejects with the documented text', async (t) => {
  const { client } = await startApp(t)
  await assert.rejects(client.waitForOrchestration('nobody', 5), (error) => error instanceof holdfast.TimeoutError && error.message === "Operation timed out: instance 'nobody' did not end within 5 ms")
  await assert.rejects(client.waitForOrchestrationTyped('nobody', 5), /Operation timed out/)
  await assert.rejects(client.handle('nobody').result({ timeoutMs: 5 }), /Operation timed out/)
})

test('a failed instance shows the stack of its error; typed waits and handles reject', async (t) => {
  const { client, result } = await runOnce(t, async () => {
    throw Object.assign(new RangeError('my text'), { code: 'E_MINE', field: 5 })
  })
  assert.equal(result.status, 'Failed')
  assert.match(result.error, /^RangeError: my text\n +at /)
  assert.equal('output' in result, false)
  await assert.rejects(client.waitForOrchestrationTyped('one'), (error) => /my text/.test(error.message) && error.code === 'E_MINE')
  await assert.rejects(client.handle('one').result(), (error) => {
    assert.ok(error instanceof holdfast.OrchestrationFailedError)
    assert.deepEqual([error.name, error.message, error.code, error.field, error.orchestrationName], ['RangeError', 'my text', 'E_MINE', 5, 'main'])
    return error.cause instanceof RangeError
  })
})

test('a thrown text is the error', async (t) => {
  const { result } = await runOnce(t, async () => {
    throw 'just text'
  })
  assert.equal(result.error, 'just text')
})

test('a cancelled instance is Failed with its reason', async (t) => {
  const { client } = await startApp(t, { orchestrations: { main: async (ctx) => await ctx.waitForEvent('e') } })
  const handle = await client.start('main', null, { id: 'one' })
  assert.deepEqual(await handle.cancel('not needed'), { accepted: true })
  const result = await client.waitForOrchestration('one')
  assert.deepEqual([result.status, result.error], ['Failed', 'canceled: not needed'])
  await assert.rejects(handle.result(), (error) => error instanceof holdfast.CancelledError && error.message === 'canceled: not needed')
  assert.deepEqual(await client.cancelOrchestration('one', 'again'), { accepted: false })
  assert.equal((await handle.status()).status, 'Failed')
})

test('a cancel without a reason says so and no more; one of an unknown id is not accepted', async (t) => {
  const { client } = await startApp(t, { orchestrations: { main: async (ctx) => await ctx.waitForEvent('never') } })
  assert.deepEqual(await client.cancelInstance('nobody'), { accepted: false })
  await client.startOrchestration('one', 'main')
  assert.deepEqual(await client.cancelInstance('one'), { accepted: true })
  assert.equal((await client.waitForOrchestration('one')).error, 'canceled')
  assert.deepEqual(await client.cancelInstance('one'), { accepted: false })
})

test('an accepted start is told from an unknown id', async () => {
  const { provider } = await fakeProvider()
  const client = new holdfast.Client(provider)
  assert.equal((await client.getStatus('one')).isPending, undefined)
  await client.startOrchestration('one', 'nobody has it')
  assert.deepEqual(await client.getStatus('one'), { status: 'NotFound', customStatusVersion: 0, isPending: true })
})

test('messages of a queue are read in order, events by name, also when sent before anything runs', async (t) => {
  const { provider } = await fakeProvider()
  const client = new holdfast.Client(provider)
  await client.startOrchestration('one', 'main')
  for (const n of [1, 2, 3]) await client.enqueueEvent('one', 'q', n)
  await client.raiseEvent('one', 'e', 'early')
  const runtime = new holdfast.Runtime(provider)
  runtime.registerOrchestration('main', function* (ctx) {
    return [yield ctx.dequeueEvent('q'), yield ctx.waitForEvent('e'), yield ctx.dequeueEvent('q'), yield ctx.dequeueEvent('q')]
  })
  await runtime.start()
  t.after(() => runtime.shutdown())
  assert.deepEqual((await client.waitForOrchestration('one')).output, [1, 'early', 2, 3])
})

test('history has the documented kinds and data', async (t) => {
  const { client } = await runOnce(
    t,
    function* (ctx) {
      yield ctx.scheduleActivity('double', 4)
      yield ctx.scheduleTimer(1)
      yield ctx.all([ctx.scheduleActivity('bad')])
      yield ctx.scheduleSubOrchestrationWithId('kid', 'kid-1', 'in')
      return { end: true }
    },
    {
      input: { n: 1 },
      activities: {
        double: (ctx, n) => n * 2,
        bad() {
          throw Object.assign(new Error('no'), { code: 'E_NO' })
        },
      },
      orchestrations: { kid: async (ctx, input) => `${input} out` },
    },
  )
  const history = await client.readExecutionHistory('one', 1)
  const of = (kind) => history.find((each) => each.kind === kind)
  const data = (kind) => JSON.parse(of(kind).data)
  assert.deepEqual(history.map(({ eventId }) => eventId), history.map((_, i) => i + 1))
  assert.deepEqual(data('OrchestrationStarted'), { name: 'main', version: '1.0.0', input: { n: 1 } })
  assert.deepEqual(data('ActivityScheduled'), { name: 'double', input: 4 })
  assert.equal(of('ActivityCompleted').data, '8')
  assert.equal(of('ActivityCompleted').sourceEventId, of('ActivityScheduled').eventId)
  assert.deepEqual(data('TimerFired'), data('TimerCreated'))
  assert.equal(typeof data('TimerCreated').fireAtMs, 'number')
  assert.deepEqual([data('ActivityFailed').message, data('ActivityFailed').code], ['no', 'E_NO'])
  assert.deepEqual(data('SubOrchestrationScheduled'), { name: 'kid', instance: 'kid-1', input: 'in' })
  assert.equal(of('SubOrchestrationCompleted').data, '"in out"')
  assert.equal(of('OrchestrationCompleted').data, '{"end":true}')
  assert.equal(typeof of('OrchestrationCompleted').timestampMs, 'number')
})

test('executions and info of an instance', async (t) => {
  const { client } = await runOnce(t, async (ctx, n) => (n < 3 ? ctx.continueAsNew(n + 1) : n), { input: 1 })
  assert.deepEqual(await client.listExecutions('one'), [1, 2, 3])
  assert.deepEqual(await client.listExecutions('nobody'), [])
  const { createdAt, updatedAt, ...info } = await client.getInstanceInfo('one')
  assert.deepEqual(info, { instanceId: 'one', orchestrationName: 'main', orchestrationVersion: '1.0.0', currentExecutionId: 3, status: 'Completed', output: 3 })
  assert.ok(updatedAt >= createdAt)
  await assert.rejects(client.getInstanceInfo('nobody'), /^HoldfastError: Instance nobody not found$/)
  const first = await client.readExecutionHistory('one', 1)
  assert.equal(first.at(-1).kind, 'OrchestrationContinuedAsNew')
  assert.equal('data' in first.at(-1), false)
})

test('a failure of the engine becomes an error of its class, with what the engine says', async () => {
  const { provider, binding } = await fakeProvider()
  binding.JsClient.prototype.get = async () => ({ failure: { code: 'SATURATED', message: 'full', retryable: true, retryAfterMs: 30 } })
  const client = new holdfast.Client(provider)
  await assert.rejects(client.getStatus('one'), (error) => {
    assert.ok(error instanceof holdfast.SaturatedError && error instanceof HoldfastError)
    assert.match(error.stack, /client\.test\.mjs|getStatus/)
    return error.retryable && error.retryAfterMs === 30
  })
})

test('a client needs a provider', () => {
  for (const value of [undefined, {}, 'postgres://x']) assert.throws(() => new holdfast.Client(value), /provider (must be a PostgresProvider|is a string)/)
})
