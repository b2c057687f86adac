// Answers on their way to the engine: one that cannot be given or handed over is abandoned, and none is lost.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { fakeProvider, holdfast } from '../support/app.mjs'
import { driverOf, START } from '../support/replay.mjs'

const { Answers } = createRequire(import.meta.url)('../../dist/cjs/answers.js')

/** Answers whose first `failures` texts are refused. */
function refusing(failures) {
  const texts = []
  const answers = new Answers((text) => {
    texts.push(text)
    if (texts.length <= failures) throw new Error('the engine takes nothing')
  })
  return { answers, texts }
}

test('answers that the engine does not take are abandoned one by one', async () => {
  const { answers, texts } = refusing(1)
  answers.add('turn', '{"h":7,"n":0,"c":[],"o":"waiting"}')
  answers.add('activity', '{"h":12,"ok":1}')
  const warned = once(process, 'warning')
  answers.flush()
  assert.deepEqual(JSON.parse(texts[1]), { turns: [{ h: 7, abandon: true }], activities: [{ h: 12, abandon: true }] })
  assert.equal((await warned)[0].code, 'HOLDFAST_INTERNAL')
})

test('a flush that fails ends no process', () => {
  const { answers, texts } = refusing(2)
  answers.add('activity', '{"h":1,"ok":1}')
  answers.flush()
  assert.equal(texts.length, 2)
})

test('what follows from answers at once is taken before the flush returns, and answered in the same flush', () => {
  const texts = []
  const next = []
  const answers = new Answers(
    (text) => {
      texts.push(text)
      return texts.length === 1 ? '{"turns":[]}' : null
    },
    (batch) => {
      next.push(batch)
      answers.add('turn', '{"h":2,"n":0,"c":[],"o":"waiting"}')
      answers.flush()
      assert.equal(texts.length, 1, 'no flush within a flush')
    },
  )
  answers.add('activity', '{"h":1,"ok":1}')
  answers.flush()
  assert.deepEqual(next, ['{"turns":[]}'])
  assert.deepEqual(texts.map((text) => JSON.parse(text)), [
    { turns: [], activities: [{ h: 1, ok: 1 }] },
    { turns: [{ h: 2, n: 0, c: [], o: 'waiting' }], activities: [] },
  ])
})

test('an activation that cannot be taken up is abandoned, its neighbours are answered', async () => {
  const { driver, replies } = driverOf(async () => 1)
  const warned = once(process, 'warning')
  await driver.run([{ h: 1, n: 0, f: [], r: 0, start: { ...START, seed: 'no number' } }, { h: 2, n: 0, f: [], r: 0, start: START }])
  assert.deepEqual(replies, [{ h: 1, abandon: true }, { h: 2, n: 0, c: [], o: { completed: { output: 1 } } }])
  await warned
})

/** A runtime that is given one batch, and what it answers. */
async function answersTo(batch, activities) {
  const { provider, binding } = await fakeProvider()
  const texts = []
  let pulled = false
  const answered = new Promise((resolve) => {
    binding.JsRuntime.prototype.complete = function (text) {
      texts.push(text)
      resolve()
    }
  })
  binding.JsRuntime.prototype.next = function () {
    if (pulled) return new Promise((resolve) => (this.end = resolve))
    pulled = true
    return Promise.resolve(typeof batch === 'string' ? batch : JSON.stringify(batch))
  }
  binding.JsRuntime.prototype.shutdown = async function () {
    this.end(null)
    return { value: null }
  }
  const runtime = new holdfast.Runtime(provider)
  for (const [name, fn] of Object.entries(activities)) runtime.registerActivity(name, fn)
  await runtime.start()
  await answered
  await runtime.shutdown()
  return texts
}

const JOB = { name: 'work', input: null, instance: 'one', execution: 1, event: 2, orchestration: 'main', version: '1.0.0', attempt: 1, delivery: 1, maxAttempts: 1, tag: null, session: null, workerId: 'n', timeoutMs: null }

test('a signal to stop that comes in the batch of its job reaches the body', async () => {
  let reason
  const work = (ctx) => new Promise((resolve) => ctx.signal.addEventListener('abort', () => resolve((reason = ctx.signal.reason.code))))
  const [text] = await answersTo({ activities: [{ ...JOB, h: 5 }], aborts: [{ h: 5, reason: 'cancelled' }] }, { work })
  assert.equal(reason, 'CANCELLED')
  assert.deepEqual(JSON.parse(text).activities, [{ h: 5, ok: 'CANCELLED' }])
})

test('a batch that cannot be read makes the engine take back what JavaScript has', async () => {
  const warned = once(process, 'warning')
  assert.deepEqual(await answersTo('{"turns":[', {}), [''])
  assert.equal((await warned)[0].code, 'HOLDFAST_INTERNAL')
})
