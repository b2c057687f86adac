// The workloads. Each gets an opened system and gives one figure, with what it cost beside it.
//
// `better` says whether more or less is better; the ratio that is printed is above 1 when ours is better.

import { fork } from 'node:child_process'

import { callers, costs, look, median, now, percentile, session } from './costs.mjs'

const VALUE = { a: 1, b: 'small' }
const LIMIT_MS = 150_000

/** Waits until a count in the database is 0; the time when it was. */
async function untilNone(watch, sql) {
  const from = now()
  while (now() - from < LIMIT_MS) {
    const { rows } = await watch.query(sql)
    if (rows[0].n === 0) return now()
    await pause(20)
  }
  throw new Error(`not drained in ${LIMIT_MS / 1000} s: ${sql}`)
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const perSecond = (count, ms) => Number(((count / ms) * 1000).toPrecision(4))
const payload = (bytes) => ({ a: 1, b: 'x'.repeat(bytes) })

async function enqueueAll(system, count) {
  if (system.enqueueMany === undefined) return await callers(count, 50, () => system.enqueue(VALUE))
  for (let from = 0; from < count; from += 1000) {
    await system.enqueueMany(Array.from({ length: Math.min(1000, count - from) }, () => VALUE))
  }
}

/** Time for one workflow after the other; their latencies in ms. */
async function oneByOne(system, count, act) {
  const times = []
  for (let i = 0; i < count; i++) {
    const from = now()
    await act()
    times.push(now() - from)
    await pause(Math.random() * 10)
  }
  return times
}

async function burst({ system, admin, database, watch, module, size }, value) {
  await system.startWorker()
  await callers(50, 10, async () => system.result(await system.start('chain', 3, value)))
  await admin.query('checkpoint')
  const from = await look(admin, database)
  await callers(size, 50, () => system.start('chain', 3, value))
  const end = await untilNone(watch, module.openWorkflows)
  const to = await look(admin, database)
  return { figure: perSecond(size, end - from.at), costs: costs(from, to, size) }
}

export const WORKLOADS = {
  workflow3: {
    unit: 'workflows/s', better: 'more', size: 2000, what: 'workflows of 3 steps, started as fast as 50 callers can',
    run: (bench) => burst(bench, VALUE),
  },
  'workflow3-callers': {
    unit: 'workflows/s', better: 'more', size: 10, what: '50 callers, each starts a workflow of 3 steps and waits for its result',
    async run({ system, admin, database, size }) {
      await system.startWorker()
      const one = async () => system.result(await system.start('chain', 3, VALUE))
      await callers(50, 50, one)
      const from = await look(admin, database)
      const times = []
      const end = now() + size * 1000
      await Promise.all(Array.from({ length: 50 }, async () => {
        while (now() < end) {
          const begin = now()
          await one()
          times.push(now() - begin)
        }
      }))
      const to = await look(admin, database)
      const more = { p50Ms: Math.round(median(times)), p99Ms: Math.round(percentile(times, 0.99)) }
      return { figure: perSecond(times.length, to.at - from.at), costs: costs(from, to, times.length), more }
    },
  },
  jobs: {
    unit: 'jobs/s', better: 'more', size: 10_000, what: 'jobs that do nothing, enqueued before the worker starts',
    async run({ system, admin, database, watch, module, size, counts }) {
      await enqueueAll(system, size)
      await admin.query('checkpoint')
      const from = await look(admin, database)
      await system.startWorker()
      // Counting the rows that are left costs the server, so nobody asks before all have run.
      while (counts.jobs < size && now() - from.at < LIMIT_MS) await pause(5)
      const end = await untilNone(watch, module.openJobs)
      const to = await look(admin, database)
      if (counts.jobs < size) throw new Error(`${counts.jobs} of ${size} jobs ran`)
      return { figure: perSecond(size, end - from.at), costs: costs(from, to, size) }
    },
  },
  enqueue: {
    unit: 'rows/s', better: 'more', size: 20_000, what: 'jobs enqueued 1 000 in a call',
    async run({ system, admin, database, size }) {
      await admin.query('checkpoint')
      const from = await look(admin, database)
      await enqueueAll(system, size)
      const to = await look(admin, database)
      return { figure: perSecond(size, to.at - from.at), costs: costs(from, to, size) }
    },
  },
  latency: {
    unit: 'ms (p50)', better: 'less', size: 150, what: 'a workflow of 3 steps on an idle system, start to result',
    async run({ system, size }) {
      await system.startWorker()
      const one = async () => system.result(await system.start('chain', 3, VALUE))
      await oneByOne(system, 10, one)
      const times = await oneByOne(system, size, one)
      return { figure: Number(median(times).toFixed(2)), more: { p99Ms: Number(percentile(times, 0.99).toFixed(2)) } }
    },
  },
  fanout: {
    unit: 's', better: 'less', size: 1000, what: '1 000 steps in parallel and their join',
    async run({ system, admin, database, size }) {
      await system.startWorker()
      await system.result(await system.start('fan', 20, VALUE))
      const from = await look(admin, database)
      const result = await system.result(await system.start('fan', size, VALUE))
      const to = await look(admin, database)
      if (result !== undefined && result !== size) throw new Error(`joined ${result} of ${size}`)
      return { figure: Number(((to.at - from.at) / 1000).toPrecision(3)), costs: costs(from, to, size) }
    },
  },
  sequential: {
    unit: 'ms/step', better: 'less', size: 2000, what: '2 000 steps, one after the other',
    async run({ system, admin, database, size, counts }) {
      await system.startWorker()
      await system.result(await system.start('chain', 20, VALUE))
      counts.times = []
      const from = await look(admin, database)
      await system.result(await system.start('chain', size, VALUE))
      const to = await look(admin, database)
      const stretch = (begin, end) => Number(((counts.times[end] - counts.times[begin]) / (end - begin)).toFixed(3))
      const last = counts.times.length - 1
      const more = { firstMs: stretch(0, 200), lastMs: stretch(last - 200, last), steps: size }
      return { figure: Number(((to.at - from.at) / size).toPrecision(4)), costs: costs(from, to, size), more }
    },
  },
  idle: {
    unit: 'transactions/s', better: 'less', size: 60, what: 'a worker that has nothing to do, for 60 s',
    async run({ system, admin, database, size }) {
      await system.startWorker()
      await pause(8000)
      const from = await look(admin, database)
      await pause(size * 1000)
      const to = await look(admin, database)
      const seconds = (to.at - from.at) / 1000
      const figure = Number(((to.transactions - from.transactions) / seconds).toFixed(2))
      return { figure, more: { nodeCpuSPerMinute: Number((((to.node - from.node) / seconds) * 60).toFixed(2)) } }
    },
  },
  contention: {
    unit: 'jobs/s of 4 processes for each of 1', better: 'more', size: 10_000, what: 'the same jobs drained by 1, 2 and 4 worker processes',
    async run({ system, url, name, watch, module, size }) {
      const rates = {}
      for (const processes of [1, 2, 4]) {
        await enqueueAll(system, size)
        const workers = Array.from({ length: processes }, () => fork(new URL('./worker.mjs', import.meta.url), [name, url]))
        await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('message', resolve))))
        const from = now()
        for (const worker of workers) worker.send('go')
        rates[processes] = perSecond(size, (await untilNone(watch, module.openJobs)) - from)
        await Promise.all(workers.map((worker) => new Promise((resolve) => worker.once('exit', resolve).send('stop'))))
      }
      return { figure: Number((rates[4] / rates[1]).toFixed(2)), more: { jobsPerS: rates } }
    },
  },
  replay: {
    unit: 'ms', better: 'less', size: 10_000, what: 'an execution of 10 000 events goes on in a runtime that never saw it',
    async run({ system, size }) {
      const few = await system.coldReplay(4)
      const figure = await system.coldReplay(Math.floor((size - 2) / 2))
      return { figure: Math.round(figure), more: { tenEventsMs: Math.round(few) } }
    },
  },
  memory: {
    unit: 'MB at 1 000 in flight', better: 'less', size: 200_000, limitMs: 1_800_000, alone: true,
    what: 'workflows of 3 steps, 1 000 in flight all the time: what their process has resident',
    async run({ system, size }) {
      await system.startWorker()
      const [resident, from] = [[], now()]
      let done = 0
      const watching = setInterval(() => resident.push({ done, mb: process.memoryUsage.rss() / 2 ** 20 }), 250)
      await callers(size, 1000, async () => {
        await system.result(await system.start('chain', 3, VALUE))
        done += 1
      })
      clearInterval(watching)
      // The last thousand leave fewer in flight.
      const within = (begin, end) => resident.filter((each) => each.done >= begin * size && each.done < end * size - 1000).map(({ mb }) => mb)
      const of = (values) => Math.round(median(values))
      const more = {
        firstHalfMb: of(within(0.1, 0.5)), secondHalfMb: of(within(0.5, 1)), peakMb: Math.round(Math.max(...within(0, 1))),
        workflowsPerS: perSecond(size, now() - from),
      }
      return { figure: of(within(0.1, 1)), more }
    },
  },
  payload: {
    unit: 'workflows/s', better: 'more', size: 300, what: 'workflows of 3 steps that hand 100 KiB on',
    run: (bench) => burst(bench, payload(100 * 1024)),
  },
}

/** A session on the database of the run, for looking whether work is left. */
export const watcher = session
