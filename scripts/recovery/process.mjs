// Worker processes of `npm run recovery`: started, heard, ended.

import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

const script = fileURLToPath(new URL('./worker.mjs', import.meta.url))

/** A process with a part to play. */
export class Process {
  #child
  #heard = []
  #waiting = new Set()

  constructor(part) {
    this.#child = fork(script, { env: { ...process.env, HOLDFAST_RECOVERY: JSON.stringify(part) } })
    this.exited = once(this.#child, 'exit')
    this.#child.on('message', (message) => {
      this.#heard.push(message)
      for (const look of this.#waiting) look()
    })
  }

  /** What it has told so far. */
  get heard() {
    return this.#heard
  }

  /** The first thing it tells that `wanted` accepts; rejects when it ends before. */
  async until(wanted) {
    const seen = new Promise((resolve) => {
      const look = () => {
        const found = this.#heard.find(wanted)
        if (found !== undefined) resolve(found)
      }
      this.#waiting.add(look)
      look()
    })
    const ended = this.exited.then(([code, signal]) => {
      throw new Error(`a worker ended: ${code ?? signal}`)
    })
    return await Promise.race([seen, ended])
  }

  ready() {
    return this.until((message) => message.ready)
  }

  kill() {
    this.#child.kill('SIGKILL')
    return this.exited
  }

  /** Stops it; gives its counters. */
  async stop() {
    this.#child.send('stop')
    const { counters } = await this.until((message) => message.counters)
    await this.exited
    return counters
  }
}

/** Starts processes with these parts and waits until all take work. */
export async function startAll(parts) {
  const processes = parts.map((part) => new Process(part))
  await Promise.all(processes.map((each) => each.ready()))
  return processes
}
