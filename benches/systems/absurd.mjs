// absurd. Tuned: 50 tasks at once, a pool of 50, a poll every 20 ms (the defaults are 1, 10 and 250 ms).

import { Absurd } from 'absurd-sdk'
import pg from 'pg'

import { absurdSchema } from '../lib/absurd-schema.mjs'

export const name = 'absurd'
export const packages = ['absurd-sdk']
export const settings = { worker: 'concurrency 50, pollInterval 0.02', pool: 50 }
export const sizes = { workflow3: 1000, jobs: 4000, sequential: 2000, fanout: 1000 }
export const serves = ['workflow3', 'workflow3-callers', 'jobs', 'latency', 'fanout', 'sequential', 'idle', 'contention', 'payload']
export const openJobs = `select count(*)::int n from absurd.t_default where state in ('pending', 'running', 'sleeping')`
export const openWorkflows = openJobs

export async function open({ url, hooks, child }) {
  const pool = new pg.Pool({ connectionString: url, max: 50 })
  pool.on('error', () => {})
  if (!child) await pool.query(absurdSchema())
  const quiet = { log() {}, info() {}, warn: console.error, error: console.error }
  const app = new Absurd({ db: pool, queueName: 'default', log: quiet })
  if (!child) await app.createQueue('default')
  const step = (ctx, i, value) => ctx.step(`s${i}`, async () => hooks.step(value))
  app.registerTask({ name: 'chain' }, async ({ count, value }, ctx) => {
    let last = value
    for (let i = 0; i < count; i++) last = await step(ctx, i, last)
    return hooks.end(last)
  })
  app.registerTask({ name: 'fan' }, async ({ count, value }, ctx) => {
    const all = await Promise.all(Array.from({ length: count }, (_, i) => step(ctx, i, value)))
    return hooks.end(all.length)
  })
  app.registerTask({ name: 'job' }, async (value) => hooks.job(value))
  return {
    startWorker: () => app.startWorker({ concurrency: 50, pollInterval: 0.02 }),
    start: (kind, count, value) => app.spawn(kind, { count, value }),
    async result(handle) {
      const { state, result } = await app.awaitTaskResult(handle.taskID, { timeout: 300 })
      if (state !== 'completed') throw new Error(`ended as ${state}`)
      return result
    },
    enqueue: (value) => app.spawn('job', value),
    async close() {
      await app.close()
      await pool.end()
    },
  }
}
