// graphile-worker: jobs only. Tuned as its page on performance says: a local queue, completions in batches.

import { Logger } from '@graphile/logger'
import { makeWorkerUtils, run, runMigrations } from 'graphile-worker'

export const name = 'graphile-worker'
export const packages = ['graphile-worker']
export const settings = { worker: 'concurrentJobs 24, maxPoolSize 25, localQueue.size 500, completeJobBatchDelay 0, failJobBatchDelay 0' }
export const sizes = { jobs: 40_000, enqueue: 40_000, contention: 40_000 }
export const serves = ['jobs', 'enqueue', 'idle', 'contention']
export const openJobs = 'select count(*)::int n from graphile_worker._private_jobs'

export async function open({ url, hooks, child }) {
  const logger = new Logger(() => () => {})
  const worker = { connectionString: url, concurrentJobs: 24, maxPoolSize: 25, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }
  const preset = { worker }
  if (!child) await runMigrations({ connectionString: url, logger })
  const utils = await makeWorkerUtils({ preset, logger })
  let runner
  return {
    async startWorker() {
      runner = await run({ preset, logger, noHandleSignals: true, taskList: { job: async (value) => void hooks.job(value) } })
    },
    enqueue: (value) => utils.addJob('job', value),
    enqueueMany: (values) => utils.addJobs(values.map((payload) => ({ identifier: 'job', payload }))),
    async close() {
      await runner?.stop()
      await utils.release()
    },
  }
}
