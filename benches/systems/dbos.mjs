// DBOS Transact. Its best for throughput of workflows is the direct way: `startWorkflow` in the process that runs it, with a
// larger pool than the default of 10. Jobs need its queue, because a direct workflow cannot wait for a worker.

import { DBOS, DBOSClient } from '@dbos-inc/dbos-sdk'

export const name = 'dbos'
export const packages = ['@dbos-inc/dbos-sdk']
export const settings = {
  workflows: 'started in the process, systemDatabasePoolSize 50',
  jobs: 'queue with minPollingIntervalMs 20, workerConcurrency 200, systemDatabasePoolSize 50',
}
export const sizes = { workflow3: 1000, jobs: 3000, sequential: 2000, fanout: 1000 }
export const serves = ['workflow3', 'workflow3-callers', 'jobs', 'latency', 'fanout', 'sequential', 'idle', 'contention', 'payload']
export const openJobs = `select count(*)::int n from dbos.workflow_status where status in ('ENQUEUED', 'PENDING', 'DELAYED')`
export const openWorkflows = openJobs

export async function open({ url, hooks, workload, child }) {
  const queued = workload === 'jobs' || workload === 'contention'
  DBOS.setConfig({
    name: 'bench',
    systemDatabaseUrl: url,
    logLevel: 'error',
    applicationVersion: 'v1',
    executorID: `e${process.pid}`,
    systemDatabasePoolSize: 50,
  })
  const step = DBOS.registerStep(async (value) => hooks.step(value), { name: 'step' })
  const workflows = {
    chain: DBOS.registerWorkflow(async ({ count, value }) => {
      let last = value
      for (let i = 0; i < count; i++) last = await step(last)
      return hooks.end(last)
    }, { name: 'chain' }),
    fan: DBOS.registerWorkflow(async ({ count, value }) => {
      const all = await Promise.all(Array.from({ length: count }, () => step(value)))
      return hooks.end(all.length)
    }, { name: 'fan' }),
  }
  const job = DBOS.registerWorkflow(async (value) => hooks.job(value), { name: 'job' })
  let client
  let running = false
  async function launch() {
    if (running) return
    running = true
    await DBOS.launch()
    if (queued && !child) await DBOS.registerQueue('q', { onConflict: 'always_update', minPollingIntervalMs: 20, workerConcurrency: 200 })
  }
  return {
    async prepare() {
      await launch()
      if (!queued) return
      // The queue exists now; its worker is to start later.
      await DBOS.shutdown()
      running = false
      client = await DBOSClient.create({ systemDatabaseUrl: url, systemDatabasePoolSize: 50, name: 'bench', applicationName: 'bench' })
    },
    startWorker: launch,
    start: (kind, count, value) => DBOS.startWorkflow(workflows[kind])({ count, value }),
    result: (handle) => handle.getResult(),
    enqueue: (value) => client.enqueue({ workflowName: 'job', queueName: 'q', appVersion: 'v1' }, value),
    async close() {
      await client?.destroy()
      if (running) await DBOS.shutdown()
    },
    unused: job,
  }
}
