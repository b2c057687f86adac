// Payloads: exactly what JSON.stringify gives, or a refusal that names the argument and the path.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'

const require = createRequire(import.meta.url)
const { encode, decode } = require('../../dist/cjs/payload.js')
const { HoldfastError } = require('../../index.js')

const refused = (value, text, limit) =>
  assert.throws(() => encode(value, 'input', limit), (error) => {
    assert.ok(error instanceof HoldfastError)
    assert.equal(error.code, 'INVALID_PAYLOAD')
    assert.match(error.message, text)
    return true
  })

class Money {
  constructor(cents) {
    this.cents = cents
  }
  get euros() {
    return this.cents / 100
  }
}

const vectors = {
  'a string': 'text',
  'a string with quotes, NUL, line separators and emoji': '"\0\u2028\u2029 😀 \\',
  'a lone surrogate': ['\ud800', '\udc00x', 'a\ud83d'],
  'a lone surrogate as key': { '\ud800': 1 },
  numbers: [0, -0, 1.5, 1e21, 5e-324, Number.MAX_SAFE_INTEGER, -1e-7],
  null: null,
  true: true,
  'nested nulls': { a: null, b: [null, { c: null }] },
  'a date': new Date(0),
  'an invalid date': [new Date(Number.NaN)],
  'a map and a set': [new Map([[1, 2]]), new Set([1])],
  'functions, symbols and undefined': { f() {}, s: Symbol('s'), u: undefined, list: [() => {}, Symbol('s'), undefined] },
  'a symbol key': { [Symbol('s')]: 1, a: 1 },
  holes: [1, , 3],
  'an array with fields': Object.assign([1], { extra: 2 }),
  'boxed values': [Object(1), Object('s'), Object(true)],
  'a class instance': new Money(5),
  'an error': new Error('text'),
  'a typed array': new Uint8Array([1, 2]),
  'a buffer': Buffer.from('x'),
  'a null prototype': Object.assign(Object.create(null), { a: 1 }),
  'a key __proto__': JSON.parse('{"__proto__":{"a":1},"b":[{"__proto__":null}]}'),
  'a key __proto__ beside a date': { ...JSON.parse('{"x":{"__proto__":5}}'), at: new Date(1) },
  'keys like numbers': { 2: 'b', 1: 'a', x: 'c' },
  'an inherited field': Object.create({ hidden: 1 }, { own: { value: 2, enumerable: true } }),
  'a field that is not enumerable': Object.defineProperty({ a: 1 }, 'hidden', { value: 1n }),
  'a toJSON': { toJSON: () => ({ a: [1, { b: 2 }] }) },
  'a toJSON in a list': [{ toJSON: (key) => key }],
  'a toJSON that gives undefined': { a: { toJSON: () => undefined }, b: [{ toJSON: () => undefined }] },
  'a regular expression': /x/g,
  'the same object twice': (() => {
    const shared = { a: 1, at: new Date(5) }
    return [shared, shared]
  })(),
  'deep nesting': JSON.parse(`${'['.repeat(500)}1${']'.repeat(500)}`),
  'a url': new URL('https://example.org/a?b=c'),
  empty: [{}, [], ''],
}

for (const [name, value] of Object.entries(vectors)) {
  test(`${name}: the text is that of JSON.stringify`, () => {
    const text = encode(value, 'input')
    assert.equal(text, JSON.stringify(value))
    assert.equal(encode(decode(text), 'input'), text)
  })
}

test('undefined, and what JSON.stringify has no text for, stand for null', () => {
  for (const value of [undefined, () => {}, Symbol('s'), { toJSON: () => undefined }]) assert.equal(encode(value, 'input'), 'null')
})

test('what JSON would change silently or cannot hold is refused with its path', () => {
  refused(Number.NaN, /^input is NaN, which JSON cannot hold$/)
  refused({ a: [{ b: Number.POSITIVE_INFINITY }] }, /^input: the value at \$\.a\[0\]\.b is Infinity/)
  refused({ 'two words': -Infinity }, /the value at \$\["two words"\] is -Infinity/)
  refused({ a: { toJSON: () => ({ b: [Number.NaN] }) } }, /the value at \$\.a\.b\[0\] is NaN/)
  refused({ get a() { return Number.NaN } }, /the value at \$\.a is NaN/)
  refused([Object(Number.NaN)], /the value at \$\[0\] is NaN/)
  refused(5n, /^input is a BigInt/)
  refused({ a: [1, Object(2n)] }, /the value at \$\.a\[1\] is a BigInt.*pass it as a string/)
})

test('a circle is refused with the place where it closes', () => {
  const circle = { a: { list: [] } }
  circle.a.list.push(circle)
  refused(circle, /the value at \$\.a\.list\[0\] is circular/)
})

test('a throwing toJSON or getter is refused with its path and cause', () => {
  const cause = new Error('my toJSON')
  const throwing = { toJSON() { throw cause } }
  assert.throws(() => encode({ a: [throwing] }, 'input'), (error) => error.cause === cause && /\$\.a\[0\] threw while it was read: my toJSON/.test(error.message))
  refused({ get b() { throw 'text' } }, /the value at \$\.b threw while it was read: text/)
})

test('nesting without an end in sight is refused', () => {
  let deep = 1
  for (let i = 0; i < 5000; i++) deep = [deep]
  refused(deep, /nested more than 1000 levels deep/)
})

test('getters and toJSON run once', () => {
  let count = 0
  const value = { get a() { count += 1; return null }, b: { toJSON() { count += 1; return { n: null } } } }
  assert.equal(encode(value, 'input'), '{"a":null,"b":{"n":null}}')
  assert.equal(count, 2)
})

test('BigInt with a toJSON of its own is written as that says', () => {
  BigInt.prototype.toJSON = function () { return `${this}n` }
  try {
    assert.equal(encode([1n], 'input'), '["1n"]')
  } finally {
    delete BigInt.prototype.toJSON
  }
})

test('the limit counts bytes of UTF-8', () => {
  assert.equal(encode('ä'.repeat(4), 'input', 10), '"ääää"')
  refused('ä'.repeat(5), /^input is 12 bytes long as JSON, more than the limit of 10$/, 10)
})

test('64 MiB are accepted and 65 refused by default', () => {
  assert.equal(encode('x'.repeat(64 * 1024 * 1024 - 2), 'input').length, 64 * 1024 * 1024)
  refused('x'.repeat(65 * 1024 * 1024), /more than the limit of 67108864/)
})
