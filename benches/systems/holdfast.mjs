// This package, with as many workflows at once as the tuned peers have, and as many jobs as pg-boss takes at once.

import { randomUUID } from 'node:crypto'

import { Client, PostgresProvider, Runtime } from '../../index.mjs'

/** Runs `steps` steps in one runtime, then lets another one go on: ms from raising the event to the stored end. */
async function coldReplay(provider, client, steps) {
  const id = randomUUID()
  const make = () => {
    const runtime = new Runtime(provider, { dispatcherPollIntervalMs: 10 })
    runtime.registerActivity('count', async (_ctx, n) => n + 1)
    runtime.registerOrchestration('replayed', async (ctx) => {
      let n = 0
      for (let i = 0; i < steps; i++) n = await ctx.scheduleActivity('count', n)
      ctx.setCustomStatus('waiting')
      await ctx.waitForEvent('go')
      return n
    })
    return runtime
  }
  const first = make()
  await first.start()
  await client.startOrchestration(id, 'replayed')
  await client.waitForStatusChange(id, 0, 50, 120_000)
  await first.shutdown()
  const second = make()
  await second.start()
  const from = performance.now()
  await client.raiseEvent(id, 'go')
  const { status, output } = await client.waitForOrchestration(id, 60_000)
  const ms = performance.now() - from
  if (status !== 'Completed' || output !== steps) throw new Error(`unexpected end: ${status} ${output}`)
  await second.shutdown()
  return ms
}

export const name = 'holdfast'
export const packages = []
export const settings = { runtime: 'orchestrationConcurrency 200, workerConcurrency 2000', pool: 8 }
export const sizes = { workflow3: 8000, jobs: 40_000, enqueue: 40_000, sequential: 2000, fanout: 1000, contention: 40_000 }
export const serves = ['workflow3', 'workflow3-callers', 'jobs', 'enqueue', 'latency', 'fanout', 'sequential', 'idle', 'contention', 'replay', 'memory', 'payload']
export const openJobs = 'select count(*)::int n from holdfast.activity_queue'
export const openWorkflows = 'select count(*)::int n from holdfast.turn_queue'

export async function open({ url, hooks }) {
  const provider = await PostgresProvider.connect(url)
  const client = new Client(provider)
  const runtime = new Runtime(provider, { orchestrationConcurrency: 200, workerConcurrency: 2000 })
  runtime.registerActivity('step', async (_ctx, value) => hooks.step(value))
  runtime.registerActivity('job', async (_ctx, value) => void hooks.job(value))
  runtime.registerOrchestration('chain', async (ctx, { count, value }) => {
    let last = value
    for (let i = 0; i < count; i++) last = await ctx.scheduleActivity('step', last)
    return last
  })
  runtime.registerOrchestration('fan', async (ctx, { count, value }) => {
    const all = await ctx.all(Array.from({ length: count }, () => ctx.scheduleActivity('step', value)))
    return all.length
  })
  return {
    startWorker: () => runtime.start(),
    async start(kind, count, value) {
      const id = randomUUID()
      await client.startOrchestration(id, kind, { count, value })
      return id
    },
    result: (id) => client.waitForOrchestrationTyped(id, 300_000),
    enqueue: (value) => client.enqueueActivity('job', value),
    enqueueMany: (values) => client.enqueueActivities(values.map((input) => ({ activity: 'job', input }))),
    coldReplay: (steps) => coldReplay(provider, client, steps),
    async close() {
      await runtime.shutdown()
      await provider.close()
    },
  }
}
