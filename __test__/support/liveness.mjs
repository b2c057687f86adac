// Worker processes whose loops can be blocked, paused and made to fail, and the world they run in.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { Client, PostgresProvider } from '../../index.mjs'
import { databaseUrl, freshSchema } from './world.mjs'

/** How long loops are blocked. */
export const BLOCK_MS = Number(process.env.HOLDFAST_TEST_BLOCK_MS ?? 8000)
const LIMIT_MS = BLOCK_MS + 60_000

/** A dead process is found within 5 s, a stalled loop within a second; leases are far shorter than a blocked loop. */
export const QUICK = {
  heartbeatIntervalMs: 500,
  staleAfterMs: 4000,
  orchestratorLockTimeoutMs: 1000,
  workerLockTimeoutMs: 1000,
  eventLoopStallTimeoutMs: 500,
}

/** A worker process, see liveness-worker.mjs. */
export class Worker {
  #child
  #waiting = new Set()
  told = []
  errors = ''

  constructor(world, { options = {}, env = {}, ...config } = {}) {
    const script = fileURLToPath(new URL('./liveness-worker.mjs', import.meta.url))
    const told = { url: world.url, schema: world.schema, options: { ...QUICK, ...options }, ...config }
    this.#child = fork(script, { env: { ...process.env, ...env, HOLDFAST_TEST_WORKER: JSON.stringify(told) }, silent: true })
    this.#child.stderr.on('data', (text) => (this.errors += text))
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      this.told.push(JSON.parse(line))
      for (const look of this.#waiting) look()
    })
    this.exited = once(this.#child, 'close').then(([code, signal]) => ({ code, signal }))
    world.t.after(() => this.#child.kill('SIGKILL'))
  }

  get pid() {
    return this.#child.pid
  }

  /** The first thing it tells that `wanted` accepts. */
  async until(wanted) {
    const seen = new Promise((resolve) => {
      const look = () => {
        const found = this.told.find(wanted)
        if (found === undefined) return
        this.#waiting.delete(look)
        resolve(found)
      }
      this.#waiting.add(look)
      look()
    })
    const ended = this.exited.then(({ code, signal }) => {
      throw new Error(`the worker ended: ${code ?? signal} ${this.errors}`)
    })
    const late = delay(LIMIT_MS, undefined, { ref: false }).then(() => {
      throw new Error(`the worker did not tell it: ${wanted}; it told ${JSON.stringify(this.told)}`)
    })
    return await Promise.race([seen, ended, late])
  }

  ready() {
    return this.until((line) => line.ready)
  }

  async stats() {
    const before = this.told.length
    this.#child.send('stats')
    return await this.until((line) => line.stats !== undefined && this.told.indexOf(line) >= before)
  }

  /** Whether it does not answer for so long. */
  async isSilentFor(ms) {
    return await Promise.race([this.stats().then(() => false, () => true), delay(ms, true, { ref: false })])
  }

  signal(name) {
    this.#child.kill(name)
  }

  stop() {
    this.#child.send('stop')
    return this.exited
  }
}

/** A schema of its own and a client, for workers. */
export async function openWorld(t) {
  const [url, schema] = [databaseUrl(), freshSchema()]
  const provider = await PostgresProvider.connectWithSchema(url, schema)
  t.after(() => provider.close())
  const client = new Client(provider)
  return { t, url, schema, client, end: (id) => client.waitForOrchestration(id, LIMIT_MS) }
}

/** Kinds of the events of an instance. */
export const kindsOf = async (world, id) => (await world.client.readExecutionHistory(id, 1)).map((event) => event.kind)
