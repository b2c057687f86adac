// decode(encode(x)) is x by JSON's rules, or x is refused with the path of what is bad; for fixed vectors and for random ones.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { describe, test } from 'node:test'

import { dice } from '../support/dice.mjs'
import { BROKEN_TEXTS, REFUSED_VALUES, TEXTS, VALUES } from './vectors.mjs'

const { decode, encode } = createRequire(import.meta.url)('../../dist/cjs/payload.js')

/** What JSON makes of a value; `undefined` alone is null. */
const byJson = (value) => JSON.parse(JSON.stringify(value) ?? 'null')

function survives(value) {
  const text = encode(value, 'input')
  assert.equal(text, JSON.stringify(value) ?? 'null')
  assert.deepEqual(decode(text), byJson(value))
}

/** The same value in the places where a codec may trip. */
const PLACES = {
  alone: (value) => value,
  'in a list': (value) => [0, value, { after: 1 }],
  'as a field beside a date': (value) => ({ at: new Date(1), value }),
}

describe('texts', () => {
  for (const [what, text] of [...TEXTS, ...BROKEN_TEXTS]) {
    test(what, () => {
      for (const place of Object.values(PLACES)) survives(place(text))
      survives({ [text]: text, [`${text}2`]: { [text]: 1 } })
    })
  }
})

describe('values', () => {
  for (const [what, value] of VALUES) {
    test(what, () => {
      for (const place of Object.values(PLACES)) survives(place(value))
    })
  }
  test('no prototype was changed by any of them', () => {
    assert.equal({}.polluted, undefined)
    assert.equal({}.x, undefined)
  })
})

/** How an error names a path: the argument alone, or what is at a place in it. */
const named = (path) => (path === '$' ? 'input is' : path)

describe('refused', () => {
  for (const [what, [value, path]] of REFUSED_VALUES) {
    test(`${what}, with its path`, () => {
      for (const [place, prefix] of [[(inner) => inner, '$'], [(inner) => ({ at: [inner] }), '$.at[0]']]) {
        assert.throws(() => encode(place(value), 'input'), (error) => {
          assert.equal(error.code, 'INVALID_PAYLOAD')
          assert.ok(error.message.includes(named(prefix + path.slice(1))), `${error.message} names ${prefix + path.slice(1)}`)
          return true
        })
      }
    })
  }
})

test('there are at least 500 fixed vectors', () => {
  const places = Object.keys(PLACES).length
  const count = (TEXTS.size + BROKEN_TEXTS.size) * (places + 1) + VALUES.size * places + REFUSED_VALUES.size * 2
  assert.ok(TEXTS.size + BROKEN_TEXTS.size + VALUES.size + REFUSED_VALUES.size >= 250, 'different ones')
  assert.ok(count >= 500, `${count} vectors`)
})

describe('random values', () => {
  const seed = Number(process.env.HOLDFAST_SEED ?? Date.now() % 1_000_000_000)
  const runs = Number(process.env.HOLDFAST_RUNS ?? 3000)
  const texts = [...TEXTS.values(), ...BROKEN_TEXTS.values()]
  const bad = [1n, Number.NaN, Number.POSITIVE_INFINITY, Object(2n)]

  /** A value, and the path of the first bad part when one was put in. */
  function random(roll, depth, wantBad) {
    if (depth === 0 || roll.chance(0.3)) {
      if (wantBad) return { value: roll.pick(bad), path: '' }
      return { value: roll.pick([roll.pick(texts), (roll.below(2_000_001) - 1_000_000) / 1024, roll.chance(0.5), null, undefined, new Date(roll.below(1e12))]) }
    }
    const size = 1 + roll.below(4)
    const badAt = wantBad ? roll.below(size) : -1
    const isList = roll.chance(0.5)
    const value = isList ? [] : {}
    let path
    for (let i = 0; i < size; i++) {
      const inner = random(roll, depth - 1, i === badAt)
      const key = isList ? i : `k${i}`
      value[key] = inner.value
      if (i === badAt) path = `${isList ? `[${i}]` : `.k${i}`}${inner.path}`
    }
    return { value, path }
  }

  test(`survive or are refused with their path (HOLDFAST_SEED=${seed})`, () => {
    for (let run = 0; run < runs; run++) {
      const roll = dice(seed + run)
      const wantBad = roll.chance(0.3)
      const { value, path } = random(roll, 5, wantBad)
      if (!wantBad) {
        survives(value)
        continue
      }
      assert.throws(() => encode(value, 'input'), (error) => error.code === 'INVALID_PAYLOAD' && error.message.includes(named(`$${path}`)), `seed ${seed + run}, path $${path}`)
    }
  })
})
