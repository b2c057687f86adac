// A worker process of the tests. Its configuration is JSON in HOLDFAST_TEST_WORKER:
// { url, schema, options, stepMs, hang, kill, ledger }. With a ledger, `effect` appends its input to that file.

import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'

import { PostgresProvider, Runtime } from '../../index.mjs'

const config = JSON.parse(process.env.HOLDFAST_TEST_WORKER)
const provider = await PostgresProvider.connectWithSchema(config.url, config.schema)
const runtime = new Runtime(provider, { logLevel: 'off', ...config.options })

runtime.registerActivity('step', async (_ctx, n) => {
  if (config.stepMs) await delay(config.stepMs)
  return n + 1
})
runtime.registerActivity('hang', () => (config.hang ? new Promise(() => {}) : 'done'))
runtime.registerActivity('effect', async (_ctx, name) => {
  appendFileSync(config.ledger, `${name}\n`)
  await delay(config.stepMs ?? 0)
  return name
})
runtime.registerActivity('kill', () => {
  process.kill(process.pid, 'SIGKILL')
  return new Promise(() => {})
})
runtime.registerOrchestration('three', async (ctx, n) => {
  const a = await ctx.scheduleActivity('step', n)
  const b = await ctx.scheduleActivity('step', a)
  return await ctx.scheduleActivity('step', b)
})
runtime.registerOrchestration('hanging', function* (ctx) {
  return yield ctx.scheduleActivity('hang')
})
runtime.registerOrchestration('killer', async (ctx) => await ctx.scheduleActivity('kill'))

createInterface({ input: process.stdin }).on('line', async () => {
  process.stdin.unref()
  await runtime.shutdown(config.graceMs ?? 100)
  await provider.close()
  process.stdin.destroy()
})

await runtime.start()
console.log('ready')
