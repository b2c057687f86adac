// Schemas on definitions: refused where the value is handed over, and once more where it is used, by whoever sent it.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fakeProvider, holdfast, startApp } from '../support/app.mjs'

const { HoldfastError, defineActivity, defineEvent, defineOrchestration } = holdfast

/** A schema by hand: `parse` gives the value or throws an array of issues. */
function schema(parse, { later = false } = {}) {
  const validate = (value) => {
    try {
      return { value: parse(value) }
    } catch (issues) {
      return { issues }
    }
  }
  return { '~standard': { version: 1, vendor: 'test', validate: later ? async (value) => validate(value) : validate } }
}

const order = schema((value) => {
  if (typeof value?.id !== 'number') throw [{ message: 'expected a number', path: ['order', { key: 'id' }] }]
  return { ...value, checked: true }
})
const text = schema((value) => {
  if (typeof value !== 'string') throw [{ message: 'expected a text' }]
  return value
})
const refused = (words) => (error) => error instanceof HoldfastError && error.code === 'SCHEMA_REFUSED' && words.test(error.message)

test('a start with a bad input rejects and stores nothing; the code gets what the schema makes of a good one', async (t) => {
  const { client } = await startApp(t, {
    orchestrations: { main: defineOrchestration('main', async (_ctx, input) => input, { input: order }).fn },
  })
  const main = defineOrchestration('main', async (_ctx, input) => input, { input: order })
  await assert.rejects(client.start(main, { id: 'x' }, { id: 'a' }), refused(/^input of orchestration 'main' does not fit its schema: order\.id: expected a number$/))
  await assert.rejects(client.startOrchestration('a', main, {}), refused(/order\.id/))
  assert.equal((await client.getStatus('a')).status, 'NotFound')
  assert.deepEqual(await (await client.start(main, { id: 1 })).result(), { id: 1, checked: true })
})

test('a bad input that came another way fails the orchestration', async (t) => {
  const main = defineOrchestration('main', function* (_ctx, input) {
    return input
  }, { input: order })
  const { client } = await startApp(t, { orchestrations: { main: main.fn } })
  await client.startOrchestration('a', 'main', { id: 'by name' })
  const { status, error } = await client.waitForOrchestration('a')
  assert.equal(status, 'Failed')
  assert.match(error, /does not fit its schema: order\.id: expected a number/)
})

test('an activity refuses input and result, and is not tried again; its schema may answer later', async (t) => {
  let runs = 0
  const slow = schema((value) => {
    if (typeof value?.id !== 'number') throw [{ message: 'expected a number' }]
    return value
  }, { later: true })
  const work = defineActivity('work', async (_ctx, input) => {
    runs += 1
    return input.result
  }, { input: slow, output: text })
  const { client } = await startApp(t, {
    activities: { work: work.fn },
    orchestrations: {
      async main(ctx) {
        const results = []
        for (const input of [{ id: 1, result: 'fine' }, { id: 'no' }, { id: 1, result: 5 }]) {
          try {
            results.push(await ctx.scheduleActivity(work, input, { retry: { maxAttempts: 3, baseDelayMs: 1 } }))
          } catch (error) {
            results.push([error.code, error.message])
          }
        }
        return results
      },
    },
  })
  await client.startOrchestration('a', 'main')
  assert.deepEqual((await client.waitForOrchestration('a')).output, [
    'fine',
    ['SCHEMA_REFUSED', "input of activity 'work' does not fit its schema: expected a number"],
    ['SCHEMA_REFUSED', "result of activity 'work' does not fit its schema: expected a text"],
  ])
  assert.equal(runs, 2)
})

test('an output of an orchestration is checked, of generators and of async functions', async (t) => {
  const bodies = {
    *generator(ctx) {
      yield ctx.scheduleTimer(1)
      return 5
    },
    asynchronous: async () => 5,
  }
  const orchestrations = Object.fromEntries(Object.entries(bodies).map(([name, fn]) => [name, defineOrchestration(name, fn, { output: text }).fn]))
  const { client } = await startApp(t, { orchestrations })
  for (const name of Object.keys(bodies)) {
    await client.startOrchestration(name, name)
    assert.match((await client.waitForOrchestration(name)).error, new RegExp(`output of orchestration '${name}' does not fit its schema: expected a text`))
  }
})

test('an orchestration refuses a schema that answers later', async (t) => {
  const main = defineOrchestration('main', async () => 1, { input: schema((value) => value, { later: true }) })
  const { client } = await startApp(t, { orchestrations: { main: main.fn } })
  await client.startOrchestration('a', 'main', 1)
  assert.match((await client.waitForOrchestration('a')).error, /answers later/)
})

test('data of events and queues is checked when it is sent', async (t) => {
  const { client } = await startApp(t, {})
  const approved = defineEvent('approved', { schema: text })
  await assert.rejects(client.raiseEvent('a', approved, 5), refused(/^data of event 'approved' does not fit its schema: expected a text$/))
  await assert.rejects(client.enqueueEvent('a', approved, 5), refused(/^message of queue 'approved'/))
  await assert.rejects(client.handle('a').raise(approved, 5), refused(/data of event/))
})

test('a job with an input that its schema refuses is not queued; a list says which', async () => {
  const { provider } = await fakeProvider()
  const client = new holdfast.Client(provider)
  const work = defineActivity('work', async () => 1, { input: text })
  await assert.rejects(client.enqueueActivity(work, 5), refused(/^input of activity 'work' does not fit its schema: expected a text$/))
  const items = [{ activity: work, input: 'fine' }, { activity: work, input: 5 }]
  await assert.rejects(client.enqueueActivities(items), refused(/^item 1: input of activity 'work' does not fit its schema: expected a text$/))
  const main = defineOrchestration('main', async () => 1, { input: text })
  await assert.rejects(client.startMany([{ orchestration: main, input: 5 }]), refused(/^item 0: input of orchestration 'main'/))
  await assert.rejects(client.startMany([{ orchestration: 'a' }, { orchestration: 'b', delayMs: -1 }]), /^HoldfastError: item 1: delayMs/)
})

test('what is no schema is refused at the definition', () => {
  for (const input of [5, {}, () => true, { '~standard': {} }]) {
    assert.throws(() => defineActivity('a', async () => 1, { input }), /input schema of activity 'a' must be a schema with the Standard Schema interface/)
  }
})

test('the public contract says any nowhere', () => {
  const page = readFileSync(new URL('../../index.d.ts', import.meta.url), 'utf8')
  const code = page.replace(/\/\*[\s\S]*?\*\//g, '').replace(/\/\/.*$/gm, '').replace(/'[^']*'/g, "''")
  assert.deepEqual(code.split('\n').filter((line) => /\bany\b/.test(line)), [])
})
