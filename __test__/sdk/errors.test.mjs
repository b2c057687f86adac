// Errors: what is thrown travels as JSON and comes back with its name, message, code, stack, fields and cause.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as esm from '../../index.mjs'
import { holdfast } from '../support/app.mjs'

const { fromErrorPayload, toErrorPayload, HoldfastError } = holdfast
const roundTrip = (error) => fromErrorPayload(JSON.parse(JSON.stringify(toErrorPayload(error))))

test('an error keeps its name, message, code, stack, fields and cause chain', () => {
  class CardDeclined extends Error {
    name = 'CardDeclined'
    code = 'E_FUNDS'
    details = { balance: 12, list: [1] }
  }
  const error = new CardDeclined('no funds', { cause: new TypeError('inner', { cause: 'root' }) })
  const back = roundTrip(error)
  assert.ok(back instanceof Error)
  assert.deepEqual([back.name, back.message, back.code, back.details, back.stack], ['CardDeclined', 'no funds', 'E_FUNDS', error.details, error.stack])
  assert.ok(back.cause instanceof TypeError)
  assert.equal(back.cause.stack, error.cause.stack)
  assert.equal(back.cause.cause.message, 'root')
  assert.deepEqual(Object.keys(back).sort(), ['code', 'details'])
})

test('errors of this package come back as their classes', () => {
  const saturated = new holdfast.SaturatedError('full', { code: 'SATURATED', retryable: true, retryAfterMs: 250 })
  const back = roundTrip(saturated)
  assert.ok(back instanceof holdfast.SaturatedError)
  assert.deepEqual([back.code, back.retryable, back.retryAfterMs, back.name], ['SATURATED', true, 250, 'SaturatedError'])
  assert.ok(!(back instanceof holdfast.TimeoutError))
})

test('a number as code stays a number on a plain error', () => {
  assert.equal(roundTrip(Object.assign(new Error('x'), { code: 42 })).code, 42)
})

test('retryable is carried when it is said', () => {
  assert.equal(toErrorPayload(Object.assign(new Error('x'), { retryable: false })).retryable, false)
  assert.equal('retryable' in toErrorPayload(new Error('x')), false)
})

test('anything can be thrown', () => {
  const cases = [
    ['text', 'text'],
    [undefined, 'undefined'],
    [null, 'null'],
    [42n, '42'],
    [Symbol('s'), 'Symbol(s)'],
    [{ a: 1 }, '{"a":1}'],
    [{ message: 'like an error', code: 'X' }, 'like an error'],
    [Object.create(null), '{}'],
    [{ toString() { throw new Error('trap') }, toJSON() { throw new Error('trap') } }, 'a thrown value that cannot be shown'],
  ]
  for (const [thrown, message] of cases) assert.equal(toErrorPayload(thrown).message, message)
  assert.equal(toErrorPayload({ message: 'm', code: 'X', extra: 1 }).data.extra, 1)
})

test('getters that throw, circles and fields that JSON cannot hold are left out', () => {
  const error = new Error('kept')
  Object.defineProperty(error, 'trap', { enumerable: true, get() { throw new Error('trap') } })
  Object.assign(error, { self: error, big: 1n, fn() {}, nan: Number.NaN, ok: [1], large: 'x'.repeat(100_000) })
  assert.deepEqual(toErrorPayload(error).data, { ok: [1] })
  const hostile = new Proxy(new Error('x'), { get() { throw new Error('no') }, has() { throw new Error('no') }, ownKeys() { throw new Error('no') } })
  assert.equal(toErrorPayload(hostile).name, 'Error')
})

test('stack, message, number of fields and depth of causes are bounded', () => {
  const error = new Error('m'.repeat(100_000))
  error.stack = 's'.repeat(100_000)
  for (let i = 0; i < 200; i++) error[`field${i}`] = i
  error.cause = error
  const payload = toErrorPayload(error)
  assert.ok(payload.message.length < 66_000 && payload.stack.length < 9_000)
  assert.equal(Object.keys(payload.data).length, 64)
  let depth = 0
  for (let each = payload; each; each = each.cause) depth += 1
  assert.equal(depth, 9)
})

test('a field cannot change what an error is', () => {
  const payload = { name: 'Error', message: 'm', data: JSON.parse('{"__proto__":{"polluted":1},"stack":"s","name":"n","message":"x","constructor":1}') }
  const back = fromErrorPayload(payload)
  assert.deepEqual([back.message, back.name, back.polluted, back.constructor], ['m', 'Error', undefined, Error])
})

test('classes have their names and one base', () => {
  for (const name of ['ActivityFailedError', 'OrchestrationFailedError', 'CancelledError', 'NondeterminismError', 'TimeoutError', 'SaturatedError', 'CircuitOpenError', 'InstanceExistsError']) {
    const error = new holdfast[name]('text', { code: 'X', cause: 1 })
    assert.equal(error.name, name)
    assert.ok(error instanceof holdfast[name] && error instanceof HoldfastError && error instanceof Error)
    assert.deepEqual([error.code, error.retryable, error.cause, 'retryAfterMs' in error], ['X', false, 1, false])
    assert.match(error.stack, new RegExp(`^${name}: text\\n`))
  }
  assert.ok(!(new HoldfastError('x', { code: 'X' }) instanceof holdfast.TimeoutError))
  assert.ok(!(new Error('x') instanceof HoldfastError))
  assert.ok(!(null instanceof HoldfastError))
})

test('instanceof works between the CommonJS and the ESM copy', () => {
  assert.notEqual(esm.HoldfastError, holdfast.HoldfastError)
  assert.ok(new holdfast.TimeoutError('x', { code: 'TIMEOUT' }) instanceof esm.TimeoutError)
  assert.ok(new esm.TimeoutError('x', { code: 'TIMEOUT' }) instanceof holdfast.HoldfastError)
})
