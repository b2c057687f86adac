// Values, names and addresses as nobody wants them, fixed, so that a failure names the one that caused it.

const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
const hex = (code) => code.toString(16).padStart(4, '0')

/** Texts by what is odd about them. Those in `BROKEN_TEXTS` are fine inside JSON and refused as a name. */
export const TEXTS = new Map([
  ...range(1, 0x1f).map((code) => [`control ${hex(code)}`, `a${String.fromCharCode(code)}b`]),
  ...[0x7f, 0x80, 0x85, 0x9f, 0xa0, 0xad].map((code) => [`control ${hex(code)}`, String.fromCharCode(code)]),
  ...[0x200b, 0x200d, 0x200e, 0x200f, 0x202a, 0x202e, 0x2028, 0x2029, 0x2060, 0xfeff, 0xfff9, 0xfffd, 0xfffe, 0xffff, 0xfdd0]
    .map((code) => [`format ${hex(code)}`, `x${String.fromCharCode(code)}y`]),
  ...[0x1f600, 0x10000, 0x10ffff, 0x1d11e, 0xe0001, 0x2f800].map((code) => [`plane ${code.toString(16)}`, String.fromCodePoint(code)]),
  ...["'", '"', '`', '\\', "''", '\\"', "\\'", '$$', '$1', '$tag$', '%s', '%', '_', '--', '/*', '*/', ';', '?', ':a', '{}', '{0}', '#{x}', '${x}', '<%= x %>']
    .map((text) => [`mark ${text}`, text]),
  ...[
    "'; drop table instance; --", "' or '1'='1", "1; select pg_sleep(10)", "E'\\x00'", "\\'; select 1; --", '"; drop schema holdfast cascade; --',
    "$holdfast$; drop table node; $holdfast$", "'::regclass", "a'||pg_sleep(1)||'", '/*schema*/', '{"$ne":null}', "x' union select null--",
  ].map((text) => [`SQL ${text}`, text]),
  ...[
    '{"h":1}', '"}],"turns":[', ']', '}', '\\u0000', '\\ud800', '{"__proto__":1}', 'null', 'true', '1e400', '-0', 'undefined', 'NaN', '[object Object]', '\n{}\n',
  ].map((text) => [`JSON ${text}`, text]),
  ...['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'then', 'length', '0', '-1', 'valueOf', 'toJSON', '__defineGetter__']
    .map((text) => [`property ${text}`, text]),
  ...[' ', '  ', '\t', '\r\n', ' lead', 'trail ', '.', '..', '../../etc/passwd', '/', '\\\\host\\share', 'C:\\', 'a/b', 'a@1.0.0', '@', 'name@', '::', 'a::b', 'file:///x', 'http://x/?a=b&c#d', 'con', 'nul', '%00', '%2e%2e', '<script>alert(1)</script>', '&amp;', '\u001b[31mred']
    .map((text) => [`place ${JSON.stringify(text)}`, text]),
  ...['é', 'e\u0301', 'ß', 'İ', 'ı', 'ﬁ', 'ǆ', 'Å', 'Å', 'Ω', '한글', '日本語', 'العربية', 'עברית', 'ไทย', 'हिन्दी', '👩‍👩‍👧‍👦', '🏳️‍🌈', '👍🏽', 'ﷺ', 'Z̷̖͐a̸l̵g̶o̷', '\u0344'.repeat(40), 'ａ', '①', '½', '＇']
    .map((text) => [`script ${text}`, text]),
  ['255 bytes', 'x'.repeat(255)],
  ['128 snowmen', '☃'.repeat(85)],
])

/** Texts that no name can be: not storable as text. */
export const BROKEN_TEXTS = new Map([
  ['NUL', '\0'], ['NUL inside', 'a\0b'], ['NUL at the end', 'a\0'], ['lone high', '\ud800'], ['lone low', '\udc00'], ['high at the end', 'a\ud83d'],
  ['low first', '\ude00a'], ['the pair in the wrong order', '\udc00\ud800'], ['two highs', '\ud800\ud800'], ['high, text, low', '\ud83dx\ude00'],
])

const deep = (depth, wrap) => range(1, depth).reduce((value) => wrap(value), 'core')

/** Values that are stored as `JSON.stringify` has them. */
export const VALUES = new Map([
  ...[0, -0, 1, -1, 0.1, 0.1 + 0.2, 1e21, 1e-7, 5e-324, Number.MAX_VALUE, Number.MIN_VALUE, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER, 2 ** 53 + 2, 2 ** 63, -(2 ** 63), 1e300, 123456789012345680000, 0xffffffff, -2147483648, 4294967296]
    .map((value) => [`number ${Object.is(value, -0) ? '-0' : value}`, value]),
  ...['', true, false, null, undefined].map((value) => [`the value ${JSON.stringify(value) ?? 'undefined'}`, value]),
  ['an empty array', []], ['an empty object', {}], ['arrays in arrays', [[[[]]]]], ['holes', [, 1, , 2]], ['an array of undefined', [undefined, undefined]],
  ['a long array', range(1, 5000)], ['many keys', Object.fromEntries(range(1, 2000).map((n) => [`k${n}`, n]))],
  ['an own __proto__', JSON.parse('{"__proto__":{"polluted":true}}')], ['nested __proto__', JSON.parse('{"a":{"__proto__":[1]},"constructor":{"prototype":{"x":1}}}')],
  ['keys like indexes', { 10: 'a', 2: 'b', '-1': 'c', '01': 'd', 1.5: 'e' }], ['an empty key', { '': { '': '' } }],
  ['a date', new Date(0)], ['the first date', new Date(-8.64e15)], ['the last date', new Date(8.64e15)], ['an invalid date', new Date(Number.NaN)],
  ['a map', new Map([['a', 1]])], ['a set', new Set([1])], ['a weak map', new WeakMap()], ['a regular expression', /x/giu], ['an error', new Error('x')],
  ['a function', () => 1], ['a symbol', Symbol('s')], ['a function in an array', [() => 1, Symbol('s')]], ['a function in an object', { f() {}, s: Symbol('s') }],
  ['a typed array', new Float64Array([1.5, -0])], ['an array buffer', new ArrayBuffer(8)], ['a buffer', Buffer.from([0, 255])], ['a data view', new DataView(new ArrayBuffer(2))],
  ['boxed values', [Object('s'), Object(1), Object(false)]], ['a class', new (class A { x = 1; get y() { return 2 } })()], ['no prototype', Object.assign(Object.create(null), { a: 1 })],
  ['a getter', { get a() { return 'got' } }], ['a toJSON', { toJSON: () => [1] }], ['a toJSON with the key', { k: { toJSON: (key) => key } }], ['a toJSON that gives undefined', [{ toJSON: () => undefined }]],
  ['a proxy', new Proxy({ a: 1 }, {})], ['arguments', (function () { return arguments })(1, 2)], ['a frozen object', Object.freeze({ a: Object.freeze([1]) })],
  ['the same object twice', (() => { const shared = { a: 1 }; return [shared, { shared }] })()],
  ['arrays 900 deep', deep(900, (value) => [value])], ['objects 900 deep', deep(900, (value) => ({ v: value }))],
  ['10 MiB of text', 'x'.repeat(10 * 1024 * 1024)], ['1 MiB of escapes', '\0'.repeat(1024 * 1024)], ['a million digits', '9'.repeat(1_000_000)],
])

/** Values that are refused, and the path that the refusal names. */
export const REFUSED_VALUES = new Map([
  ['a BigInt', [1n, '$']], ['a BigInt in a list', [[0, 1n], '$[1]']], ['a BigInt below keys', [{ a: { 'b c': 1n } }, '$.a["b c"]']], ['a boxed BigInt', [{ n: Object(1n) }, '$.n']],
  ['NaN', [Number.NaN, '$']], ['Infinity', [{ n: 1e400 }, '$.n']], ['minus Infinity', [[[-1e400]], '$[0][0]']], ['a boxed NaN', [[Object(Number.NaN)], '$[0]']],
  ['a cycle', [(() => { const a = {}; a.self = a; return a })(), '$.self']], ['a cycle in a list', [(() => { const a = []; a.push([a]); return a })(), '$[0][0]']],
  ['a cycle over two', [(() => { const a = {}; const b = { a }; a.b = b; return a })(), '$.b.a']],
  ['a getter that throws', [{ get bad() { throw new Error('no') } }, '$.bad']], ['a toJSON that throws', [[{ toJSON() { throw new Error('no') } }], '$[0]']],
  ['a toJSON that gives a BigInt', [{ x: { toJSON: () => 1n } }, '$.x']], ['a proxy that throws', [{ p: new Proxy({}, { ownKeys() { throw new Error('no') } }) }, '$.p']],
  ['a map of BigInt is a field that throws', [{ toJSON: () => ({ deep: [Number.NaN] }) }, '$.deep[0]']],
  ['arrays 10 000 deep', [deep(10_000, (value) => [value]), '$[0]']], ['objects 10 000 deep', [deep(10_000, (value) => ({ v: value })), '$.v']],
  ['a typed array with NaN', [new Float32Array([1, Number.NaN]), '$["1"]']],
])
