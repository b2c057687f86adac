// What the tests against a real database stand on: its URL, a schema of their own, and worker processes that can die.

import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** The database of the test run; `npm test` starts one. */
export function databaseUrl() {
  const url = process.env.HOLDFAST_TEST_DATABASE_URL
  if (!url) throw new Error('set HOLDFAST_TEST_DATABASE_URL, or run the tests through npm test')
  return url
}

/** A schema name that no other test uses. */
export function freshSchema() {
  return `t_${randomUUID().replaceAll('-', '').slice(0, 16)}`
}

/** Options with which a dead worker is found within a second. */
export const FAST = {
  heartbeatIntervalMs: 100,
  staleAfterMs: 600,
  orchestratorLockTimeoutMs: 200,
  workerLockTimeoutMs: 200,
}

/** A worker process (`worker.mjs`) that runs the test orchestrations until it is told to stop, or dies. */
export class Worker {
  #child
  #errors = ''

  constructor(config, env = {}) {
    const script = fileURLToPath(new URL('./worker.mjs', import.meta.url))
    this.#child = spawn(process.execPath, [script], {
      env: { ...process.env, ...env, HOLDFAST_TEST_WORKER: JSON.stringify(config) },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.#child.stdin.on('error', () => {}) // the worker may be dead already
    this.#child.stderr.on('data', (text) => (this.#errors += text))
    this.lines = createInterface({ input: this.#child.stdout })
    this.exited = once(this.#child, 'close').then(([code, signal]) => ({ code, signal, errors: this.#errors }))
  }

  /** Resolves when the worker claims work, or rejects when it ends before. */
  async ready() {
    const ended = this.exited.then(({ code, signal, errors }) => {
      throw new Error(`the worker ended before it was ready: ${code ?? signal} ${errors}`)
    })
    await Promise.race([once(this.lines, 'line'), ended])
  }

  /** Asks for a graceful stop. */
  stop() {
    this.#child.stdin.write('stop\n')
    return this.exited
  }

  kill(signal = 'SIGKILL') {
    this.#child.kill(signal)
    return this.exited
  }
}
