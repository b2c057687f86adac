// The run of the demo: starts an orchestration per file, 64 at a time, kills the first worker when half of the files
// are done, starts a second one, and waits until all have ended. It only drives and counts; the work is in examples/demo.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import { listAll, listSources } from '../../examples/demo/files.mjs'
import { countIndexed, figures, makeTables } from '../../examples/demo/tables.mjs'
import { Client, PostgresProvider } from '../../index.mjs'
import { onStop, root } from './run.mjs'

/** Orchestrations in progress at once. */
const AT_A_TIME = 64

/** How long steps may pile up at the moment of the kill: until nobody new has arrived for this time. */
const PILE_UP_MS = 100

/** No progress for so long means that something is broken; a recovery takes two to three seconds. */
const STUCK_MS = 90_000

/** A pool of connections that survives the end of the server. */
export function connectPool(url) {
  const pool = new pg.Pool({ connectionString: url, max: 4 })
  pool.on('error', () => undefined)
  return pool
}

/** Runs the demo over a folder: `{ figures, holds, failures, story }`. */
export async function runDemo({ url, folder, say }) {
  const where = folder ?? root
  const names = folder === undefined ? await listSources(where) : await listAll(where)
  if (names.length === 0) throw new Error(`there are no files below ${where}`)
  const db = connectPool(url)
  const provider = await PostgresProvider.connect(url)
  const workers = new Workers(url)
  onStop(() => workers.end())
  const started = performance.now()
  const runId = `run-${new Date().toISOString().replace(/[^0-9]/g, '').slice(0, 14)}-${process.pid}`
  const progress = new Progress(db, runId, names.length, say)
  try {
    await makeTables(db)
    say.write(`${names.length} files below ${where}, ${AT_A_TIME} at a time\n`)
    const kill = workers.killHalfWay(Math.floor(names.length / 2), (text) => progress.line(text))
    const ended = driveAll(new Client(provider), names, where, runId)
    const failures = await Promise.race([Promise.all([ended, kill]).then(([results]) => results), workers.failed, progress.stuck])
    await progress.end()
    const seconds = Math.round((performance.now() - started) / 10) / 100
    return judge({ files: names.length, counted: await figures(db, runId), kills: workers.kills, failures, seconds, runId, story: await kill })
  } finally {
    progress.stop()
    await workers.end()
    await provider.close()
    await db.end()
  }
}

function judge({ files, counted, kills, failures, seconds, runId, story }) {
  const { steps, repeated, indexed, doubled } = counted
  const lost = files - Math.min(indexed, files - failures.length)
  return {
    figures: { files, steps, kills, repeated, lost, doubled, seconds, run: runId, ...story },
    failures,
    holds: lost === 0 && doubled === 0 && kills === 1 && failures.length === 0,
  }
}

/** Starts an orchestration per file, never more than so many unfinished; resolves to what did not complete. */
async function driveAll(client, names, folder, runId) {
  const failures = []
  let next = 0
  const lane = async () => {
    while (next < names.length) {
      const number = next++
      const id = `${runId}-${number}`
      await client.startOrchestration(id, 'index-file', { run: runId, folder, name: names[number] })
      const { status, error } = await client.waitForOrchestration(id, 24 * 3_600_000)
      if (status !== 'Completed') failures.push({ id, file: names[number], status, error })
    }
  }
  await Promise.all(Array.from({ length: Math.min(AT_A_TIME, names.length) }, lane))
  return failures
}

/** The worker processes. `failed` rejects when one ends that nobody killed. */
class Workers {
  kills = 0
  #url
  #running = new Set()
  #fail
  failed = new Promise((_, reject) => { this.#fail = reject })

  constructor(url) {
    this.#url = url
    this.failed.catch(() => undefined)
  }

  /** Runs a worker until half of the files are done, kills it with its steps done but not recorded, starts another. */
  async killHalfWay(half, tell) {
    const victim = this.#start([String(half)])
    let held = { held: 0, indexed: 0 }
    await new Promise((resolve) => {
      let timer
      victim.on('message', (message) => {
        if (message.held === undefined) return
        held = message
        clearTimeout(timer)
        timer = setTimeout(resolve, PILE_UP_MS)
      })
    })
    this.#running.delete(victim)
    victim.kill('SIGKILL')
    await once(victim, 'exit')
    this.kills += 1
    tell(`SIGKILL of worker ${victim.pid}: ${held.indexed} files done, ${held.held} steps done but not recorded`)
    const heir = this.#start([])
    tell(`worker ${heir.pid} takes over as soon as the dead one's heartbeats are missed`)
    return { inFlight: held.held, indexedAtKill: held.indexed }
  }

  async end() {
    await Promise.all([...this.#running].map(async (worker) => {
      this.#running.delete(worker)
      if (worker.exitCode !== null || worker.signalCode !== null) return
      const exited = once(worker, 'exit')
      if (worker.connected) worker.send('stop', () => undefined)
      const timer = setTimeout(() => worker.kill('SIGKILL'), 10_000)
      await exited
      clearTimeout(timer)
    }))
  }

  #start(args) {
    const worker = fork(path.join(root, 'examples/demo/worker.mjs'), [this.#url, ...args], { stdio: ['ignore', 2, 2, 'ipc'] })
    this.#running.add(worker)
    worker.on('error', (error) => this.#fail(error))
    worker.on('exit', (code, signal) => {
      if (this.#running.delete(worker)) this.#fail(new Error(`worker ${worker.pid} ended by itself (${signal ?? `exit ${code}`})`))
    })
    return worker
  }
}

/** Shows how far the run is, in place on a terminal, else now and then as a line. `stuck` rejects when nothing moves. */
class Progress {
  #over = false
  #shown = ''
  #last = -1
  #fail
  #running
  stuck = new Promise((_, reject) => { this.#fail = reject })

  constructor(db, runId, total, say) {
    this.total = total
    this.say = say
    this.stuck.catch(() => undefined)
    this.#running = this.#watch(db, runId)
  }

  line(text) {
    this.#clear()
    this.say.write(`${text}\n`)
  }

  /** Shows the end. */
  async end() {
    this.stop()
    await this.#running
    this.#clear()
    if (this.say.isTTY || this.#last !== this.total) this.say.write(`${this.total} of ${this.total} files\n`)
  }

  stop() {
    this.#over = true
  }

  async #watch(db, runId) {
    let since = performance.now()
    const every = this.say.isTTY ? 100 : 500
    try {
      while (!this.#over) {
        await delay(every, undefined, { ref: false })
        if (this.#over) return
        const done = await countIndexed(db, runId).catch((error) => (error.code === '42P01' || error.code === '3F000' ? 0 : Promise.reject(error)))
        if (done !== this.#last) {
          this.#last = done
          since = performance.now()
          this.#show(`${done} of ${this.total} files`)
        } else if (performance.now() - since > STUCK_MS) {
          throw new Error(`no progress for ${STUCK_MS / 1000} s at ${done} of ${this.total} files`)
        }
      }
    } catch (error) {
      if (!this.#over) this.#fail(error)
    }
  }

  #show(text) {
    if (!this.say.isTTY) {
      this.say.write(`${text}\n`)
      return
    }
    const filled = Math.round((24 * Number.parseInt(text, 10)) / this.total)
    this.#shown = `${'#'.repeat(filled)}${'.'.repeat(24 - filled)} ${text}`
    this.say.write(`\r${this.#shown}`)
  }

  #clear() {
    if (this.#shown !== '') this.say.write(`\r${' '.repeat(this.#shown.length)}\r`)
    this.#shown = ''
  }
}
