// One process of `npm run recovery`. Its part is JSON in HOLDFAST_RECOVERY:
// { url, schema, role, options, pool, runtimes, names, blockMs }. It answers its parent over the fork's channel.
//
//   victim    takes activities that never end and turns that never end, until it is killed
//   rescuer   tells when each of them runs here
//   blocked   its loop stands still again and again, for blockMs
//   saturated its pool is never free
//   working   runs orchestrations of several steps with pauses between them
//   resting   runtimes with nothing to do

import { setTimeout as delay } from 'node:timers/promises'

import { Client, PostgresProvider, Runtime } from '../../index.mjs'

const config = JSON.parse(process.env.HOLDFAST_RECOVERY)
const provider = await PostgresProvider.connectWithSchema(config.url, config.schema, config.pool)
const isVictim = config.role === 'victim'
const runtimes = []

function block(ms) {
  const end = Date.now() + ms
  while (Date.now() < end);
}

for (let i = 0; i < (config.runtimes ?? 1); i++) {
  const runtime = new Runtime(provider, { logLevel: 'off', ...config.options })
  runtime.registerActivity('hold', (_ctx, id) => {
    if (isVictim) return new Promise(() => {})
    process.send({ ran: id, at: Date.now() })
    return null
  })
  runtime.registerOrchestration('holder', async (ctx, id) => await ctx.scheduleActivity('hold', id))
  runtime.registerOrchestration('turn', async (_ctx, id) => {
    if (isVictim) for (;;);
    process.send({ ran: id, at: Date.now() })
  })
  runtime.registerActivity('step', (_ctx, n) => n + 1)
  runtime.registerOrchestration('steps', async (ctx, steps) => {
    let done = 0
    while (done < steps) {
      done = await ctx.scheduleActivity('step', done)
      await ctx.scheduleTimer(500)
    }
    return done
  })
  for (let name = 0; name < (config.names ?? 0); name++) {
    runtime.registerActivity(`activity ${name}`, () => null)
    runtime.registerOrchestration(`orchestration ${name}`, async () => {})
  }
  await runtime.start()
  runtimes.push(runtime)
}

let ends = false
async function keepBusy() {
  if (config.role === 'blocked') {
    while (!ends) {
      block(config.blockMs)
      await delay(config.blockMs / 4)
    }
  }
  if (config.role === 'saturated') {
    const client = new Client(provider)
    const asking = async () => {
      while (!ends) await client.getSystemMetrics().catch(() => {})
    }
    await Promise.all(Array.from({ length: 64 }, asking))
  }
}
const busy = keepBusy()

process.on('message', async (message) => {
  if (message !== 'stop') return
  ends = true
  await busy
  process.send({ counters: provider.stats().counters })
  for (const runtime of runtimes) await runtime.shutdown(1000)
  await provider.close()
  process.disconnect()
})
process.send({ ready: true })
