// openworkflow. Tuned: 100 workflows at once, as in its own benchmark. Its client looks for results once a second.

import { OpenWorkflow } from 'openworkflow'
import { BackendPostgres } from 'openworkflow/postgres'

export const name = 'openworkflow'
export const packages = ['openworkflow', 'postgres']
export const settings = { worker: 'concurrency 100' }
// Its workflows end after 1 000 steps.
export const sizes = { workflow3: 800, jobs: 2000, sequential: 900, fanout: 1000 }
export const serves = ['workflow3', 'workflow3-callers', 'jobs', 'latency', 'fanout', 'sequential', 'idle', 'contention', 'payload']
export const openJobs = `select count(*)::int n from openworkflow.workflow_runs where status not in ('completed', 'failed', 'canceled', 'succeeded')`
export const openWorkflows = openJobs

export async function open({ url, hooks }) {
  const backend = await BackendPostgres.connect(url)
  const app = new OpenWorkflow({ backend })
  const workflows = {
    chain: app.defineWorkflow({ name: 'chain' }, async ({ input: { count, value }, step }) => {
      let last = value
      for (let i = 0; i < count; i++) last = await step.run({ name: `s${i}` }, () => hooks.step(last))
      return hooks.end(last)
    }),
    fan: app.defineWorkflow({ name: 'fan' }, async ({ input: { count, value }, step }) => {
      const all = await Promise.all(Array.from({ length: count }, (_, i) => step.run({ name: `s${i}` }, () => hooks.step(value))))
      return hooks.end(all.length)
    }),
  }
  const job = app.defineWorkflow({ name: 'job' }, async ({ input }) => hooks.job(input))
  const worker = app.newWorker({ concurrency: 100 })
  return {
    startWorker: () => worker.start(),
    start: (kind, count, value) => workflows[kind].run({ count, value }),
    result: (handle) => handle.result(),
    enqueue: (value) => job.run(value),
    async close() {
      await worker.stop()
      await backend.stop()
    },
  }
}
