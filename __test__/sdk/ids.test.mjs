// Names and ids: what is refused, and that quotes, emoji and any other text are fine.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { fakeProvider, holdfast } from '../support/app.mjs'

const ids = createRequire(import.meta.url)('../../dist/cjs/ids.js')
const rule = (text) => (error) => error instanceof holdfast.HoldfastError && error.code === 'INVALID_ARGUMENT' && text.test(error.message)

test('names with quotes, emoji, spaces and slashes are taken as they are', () => {
  for (const name of ['a', `o'brien "x"`, '注文 😀', 'a/b?c#d%', ' ', 'x'.repeat(512), 'sub:', 'a::b']) assert.equal(ids.checkNewInstanceId(name), name)
})

test('every rule names the argument', () => {
  assert.throws(() => ids.checkName('', 'event name'), rule(/^event name must not be empty$/))
  assert.throws(() => ids.checkName('x'.repeat(10_000), 'instance id'), rule(/^instance id is 10000 bytes long, more than the limit of 512$/))
  assert.throws(() => ids.checkName('ä'.repeat(257), 'instance id'), rule(/514 bytes/))
  assert.throws(() => ids.checkName('a\0b', 'instance id'), rule(/must not hold a NUL character/))
  assert.throws(() => ids.checkName('\ud800', 'instance id'), rule(/lone surrogate/))
  for (const value of [undefined, null, 5, {}, [], Symbol('s')]) assert.throws(() => ids.checkName(value, 'queue name'), rule(/^queue name must be a string, not /))
})

test('ids that look like automatic child ids are refused for starts, and verbatim ids of children allowed', () => {
  assert.throws(() => ids.checkNewInstanceId('sub::1'), rule(/Invalid input: instance id 'sub::1' uses the reserved sub-orchestration marker 'sub::'/))
  assert.throws(() => ids.checkNewInstanceId('a::sub::1'), rule(/reserved sub-orchestration marker/))
  assert.throws(() => ids.checkChildId('sub::1'), rule(/reserved/))
  assert.equal(ids.checkChildId('a::sub::mine'), 'a::sub::mine')
  assert.equal(ids.checkInstanceId('a::sub::2'), 'a::sub::2')
  const long = `${'x'.repeat(1015)}::sub::99`
  assert.equal(ids.checkInstanceId(long), long)
  assert.throws(() => ids.checkInstanceId(`${long}9`), rule(/^instance id is 1025 bytes long, more than the limit of 1024$/))
})

test('activity names of the engine are refused', () => {
  assert.throws(() => ids.checkActivityName('__holdfast:x', 'activity name'), rule(/reserved/))
})

test('versions are semantic versions', () => {
  for (const version of ['0.0.1', '1.2.3', '10.20.30']) assert.equal(ids.checkVersion(version), version)
  for (const version of ['1', '1.2', 'v1.2.3', '1.2.3.4', '01.2.3', '1.2.3-', '1.0.0-beta.1', '1.0.0+build']) assert.throws(() => ids.checkVersion(version), rule(/not a semantic version/))
})

test('a client refuses bad ids, names and payloads before it sends anything', async () => {
  const { provider, log } = await fakeProvider()
  const client = new holdfast.Client(provider)
  const circle = {}
  circle.self = circle
  const bad = [
    [client.startOrchestration('', 'x'), /instance id must not be empty/],
    [client.startOrchestration('x'.repeat(10_000), 'x'), /instance id is 10000 bytes/],
    [client.startOrchestration('sub::x', 'x'), /reserved/],
    [client.startOrchestration('id', ''), /orchestration name must not be empty/],
    [client.startOrchestration('id', 'x', circle), /input of orchestration 'x': the value at \$\.self is circular/],
    [client.startOrchestration('id', 'x', 1n), /BigInt/],
    [client.startOrchestration('id', 'x', 'y'.repeat(65 * 1024 * 1024)), /more than the limit/],
    [client.startOrchestrationVersioned('id', 'x', null, 'new'), /not a semantic version/],
    [client.raiseEvent('id', ''), /event name must not be empty/],
    [client.raiseEvent('id', 'e', { n: Number.NaN }), /data of event 'e': the value at \$\.n is NaN/],
    [client.enqueueEvent('id', 'q', 1n), /message of queue 'q' is a BigInt/],
    [client.cancelInstance('a\0'), /NUL/],
    [client.getStatus(5), /instance id must be a string, not a number/],
    [client.waitForOrchestration('id', -1), /timeoutMs/],
    [client.readExecutionHistory('id', 0), /executionId/],
  ]
  for (const [promise, text] of bad) await assert.rejects(promise, (error) => error instanceof holdfast.HoldfastError && text.test(error.message))
  assert.deepEqual(log.calls.filter(([call]) => call !== 'connect'), [])
})
