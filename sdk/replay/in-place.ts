/**
 * The local steps of one activation: run side by side, each result applied as a fact when it comes, until the code waits for
 * none of them any more.
 *
 * While they run the frame is not active, so a command that code gives because of something else is noticed as foreign.
 */
import type { Frame } from './frame.js'
import type { LocalTask, StepEnd } from './local.js'

/** Resolves after all microtasks: code that could run has come to a stand. */
export const barrier = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export class InPlace {
  readonly #frame: Frame
  readonly #running = new Set<LocalTask>()
  readonly #ended: { task: LocalTask; end: StepEnd }[] = []
  #isStopped = false
  #wake: () => void = () => {}

  constructor(frame: Frame) {
    this.#frame = frame
  }

  /** The turn was given up: the steps are told to stop, and nothing is answered. */
  stop(): void {
    this.#isStopped = true
    for (const task of this.#running) task.abort()
    this.#wake()
  }

  /** Runs until the code is at a stand without them; false when the turn was given up meanwhile. */
  async run(first: readonly LocalTask[]): Promise<boolean> {
    const frame = this.#frame
    for (let tasks = first; ; tasks = frame.takeLocals()) {
      for (const task of tasks) this.#begin(task)
      const next = await this.#next()
      if (this.#isStopped) return false
      if (next === undefined) return true
      frame.isActive = true
      frame.takeStir()
      frame.applyLocal(next.task, next.end)
      if (frame.isAsync && !frame.isEnded && frame.takeStir()) {
        await barrier()
        frame.checkForeign()
      }
    }
  }

  #begin(task: LocalTask): void {
    const { instance, execution } = this.#frame.start
    this.#running.add(task)
    void task.run(`${instance}:${execution}`, this.#frame.payloadLimit).then((end) => {
      this.#running.delete(task)
      this.#ended.push({ task, end })
      this.#wake()
    })
  }

  /** The next step that ended and is still wanted; undefined when none is left to wait for. */
  async #next(): Promise<{ task: LocalTask; end: StepEnd } | undefined> {
    for (;;) {
      if (this.#frame.isEnded || this.#isStopped) return undefined
      const ended = this.#ended.shift()
      if (ended !== undefined && !ended.task.isSettled) return ended
      if (ended !== undefined) continue
      // A step that lost a race is not waited for.
      if (![...this.#running].some((task) => !task.isSettled)) return undefined
      this.#frame.isActive = false
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }
}
