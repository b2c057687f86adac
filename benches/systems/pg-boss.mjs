// pg-boss: jobs only. Tuned: batches of 500, four of them at once, the next at once while batches are full, notifications.

import { PgBoss } from 'pg-boss'

export const name = 'pg-boss'
export const packages = ['pg-boss']
export const settings = { work: 'batchSize 500, burstWhenBatchFull, localConcurrency 4, pollingIntervalSeconds 0.5', queue: 'notify', constructor: 'useListenNotify' }
export const sizes = { jobs: 40_000, enqueue: 40_000, contention: 40_000 }
export const serves = ['jobs', 'enqueue', 'idle', 'contention']
export const openJobs = `select count(*)::int n from pgboss.job where name = 'job' and state < 'completed'`

export async function open({ url, hooks, child }) {
  const boss = new PgBoss({ connectionString: url, useListenNotify: true })
  boss.on('error', (error) => console.error(`pg-boss: ${error.message}`))
  await boss.start()
  if (!child) await boss.createQueue('job', { notify: true })
  const work = { batchSize: 500, burstWhenBatchFull: true, localConcurrency: 4, pollingIntervalSeconds: 0.5 }
  return {
    startWorker: () => boss.work('job', work, async (jobs) => {
      for (const { data } of jobs) hooks.job(data)
    }),
    enqueue: (value) => boss.send('job', value),
    enqueueMany: (values) => boss.insert('job', values.map((data) => ({ data }))),
    close: () => boss.stop({ graceful: false }),
  }
}
