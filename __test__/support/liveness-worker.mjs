// A worker process whose event loop can be blocked. Its configuration is JSON in HOLDFAST_TEST_WORKER:
// { url, schema, options, shutdownOn, neverBlocks }. It tells on standard output, one JSON object a line, what happens.

import { setTimeout as delay } from 'node:timers/promises'

import { PostgresProvider, Runtime } from '../../index.mjs'

const config = JSON.parse(process.env.HOLDFAST_TEST_WORKER)
const tell = (what) => console.log(JSON.stringify({ pid: process.pid, ...what }))

function block(ms) {
  if (config.neverBlocks) return
  const end = Date.now() + ms
  while (Date.now() < end);
}

const provider = await PostgresProvider.connectWithSchema(config.url, config.schema)
const runtime = new Runtime(provider, config.options)
runtime.registerActivity('block', (_ctx, ms) => {
  tell({ started: 'block' })
  block(ms)
  return process.pid
})
runtime.registerActivity('wait', async (ctx, ms) => {
  tell({ started: 'wait' })
  ctx.signal.addEventListener('abort', () => tell({ aborted: ctx.signal.reason.code }))
  await delay(config.neverBlocks ? 50 : ms)
  return process.pid
})
runtime.registerActivity('step', (_ctx, n) => n + 1)
runtime.registerOrchestration('blocking activity', async (ctx, ms) => await ctx.scheduleActivity('block', ms))
runtime.registerOrchestration('waiting', async (ctx, ms) => await ctx.scheduleActivity('wait', ms))
runtime.registerOrchestration('blocking orchestration', async (_ctx, ms) => {
  tell({ started: 'orchestration' })
  block(ms)
  return 'done'
})
runtime.registerOrchestration('steps', async (ctx, n) => {
  let sum = 0
  for (let i = 0; i < n; i++) sum = await ctx.scheduleActivity('step', sum)
  return sum
})

if (config.shutdownOn) {
  runtime.shutdownOn(config.shutdownOn.signals, { timeoutMs: config.shutdownOn.timeoutMs })
}
process.on('message', async (message) => {
  if (message === 'stats') tell({ stats: provider.stats().counters, health: runtime.health() })
  if (message !== 'stop') return
  await runtime.shutdown(100)
  await provider.close()
  process.disconnect()
})
await runtime.start()
if (config.shutdownOn) process.channel.unref()
tell({ ready: true })
