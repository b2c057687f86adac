// Time of a cold replay: an execution with 10 000 recorded events is continued by a runtime that never saw it.
//
//   node benches/cold-replay.mjs [URL] [--json]
//
// The time runs from raising an event to the stored end, so it holds the claim, reading the history, the replay in
// JavaScript, and the commit. The same is measured for an execution of a few events; the difference is the replay.

import { Client, PostgresProvider, Runtime } from '../index.mjs'

const args = process.argv.slice(2)
const json = args.includes('--json')
const url = args.find((arg) => !arg.startsWith('--')) ?? process.env.HOLDFAST_TEST_DATABASE_URL
const schema = `bench_${process.pid}_${Date.now()}`
const provider = url ? await PostgresProvider.connectWithSchema(url, schema) : await PostgresProvider.connect()
const client = new Client(provider)

function runtime() {
  const made = new Runtime(provider, { dispatcherPollIntervalMs: 10 })
  made.registerActivity('step', async (_ctx, n) => n + 1)
  made.registerOrchestration('steps', async (ctx, count) => {
    let n = 0
    for (let i = 0; i < count; i++) n = await ctx.scheduleActivity('step', n)
    await ctx.waitForEvent('go')
    return n
  })
  return made
}

/** Runs `count` steps in one runtime, then lets another one continue; the time of that continuation. */
async function measure(id, count) {
  const first = runtime()
  await first.start()
  await client.startOrchestration(id, 'steps', count)
  const wanted = 2 + 2 * count
  for (let events = 0; events < wanted; ) {
    const history = await client.readExecutionHistory(id, 1)
    events = history.length
    if (events < wanted) await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await first.shutdown()
  const second = runtime()
  await second.start()
  const from = performance.now()
  await client.raiseEvent(id, 'go')
  const end = await client.waitForOrchestration(id, 60_000)
  const ms = performance.now() - from
  if (end.status !== 'Completed' || end.output !== count) throw new Error(`unexpected end: ${JSON.stringify(end)}`)
  await second.shutdown()
  return ms
}

const few = await measure('few', 4)
const many = await measure('many', 4_999)
const stats = JSON.parse(JSON.stringify({ events: 10_000, coldMs: Math.round(many), baseMs: Math.round(few) }))
console.log(`10 000 events: ${stats.coldMs} ms from the event to the end; 10 events: ${stats.baseMs} ms`)
if (json) console.log(JSON.stringify(stats))
await provider.close()
