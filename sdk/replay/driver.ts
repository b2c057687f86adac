/**
 * The driver: runs a batch of activations and emits one reply for each.
 *
 * Generators run to their end of facts synchronously. Async functions of one batch go in rounds: facts up to the first that
 * lets code run, then one `setImmediate`, which comes after all microtasks, for all of them together. So a fan-in of thousands
 * is one round. An error in one frame never reaches another.
 */
import { encodeError } from '../error-payload.js'
import { HoldfastError } from '../errors.js'
import { encodeReply } from './encode.js'
import { Frame, type FrameBody } from './frame.js'
import type { Activation, ActivationStart } from './wire.js'

/** Finds the code of an orchestration; undefined when it is not registered. */
export type BodyFinder = (start: ActivationStart) => FrameBody | undefined

/** One activation under way. */
interface Run {
  readonly frame: Frame
  readonly activation: Activation
  position: number
}

const barrier = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export class Driver {
  readonly #frames = new Map<number, Frame>()
  readonly #find: BodyFinder
  readonly #emit: (reply: string) => void
  readonly #payloadLimit: number

  constructor(find: BodyFinder, emit: (reply: string) => void, payloadLimit: number) {
    this.#find = find
    this.#emit = emit
    this.#payloadLimit = payloadLimit
  }

  /** Number of frames kept for later turns. */
  get size(): number {
    return this.#frames.size
  }

  /** Forgets frames; their `finally` blocks do not run. */
  evict(ids: readonly number[]): void {
    for (const id of ids) this.#frames.delete(id)
  }

  /** Runs a batch. The promise, given only when an async function is among it, resolves when all replies are out. */
  run(batch: readonly Activation[]): Promise<void> | undefined {
    const rounds: Run[] = []
    for (const activation of batch) {
      const run = this.#open(activation)
      if (run !== undefined && !this.#step(run)) rounds.push(run)
    }
    return rounds.length === 0 ? undefined : this.#rounds(rounds)
  }

  async #rounds(runs: Run[]): Promise<void> {
    let live = runs
    while (live.length > 0) {
      await barrier()
      live = live.filter((run) => {
        run.frame.checkForeign()
        return !this.#step(run)
      })
    }
  }

  /** Takes the frame of an activation up; undefined when it was answered at once. */
  #open(activation: Activation): Run | undefined {
    const { h, start } = activation
    if (start === undefined) {
      const frame = this.#frames.get(h)
      if (frame === undefined || frame.applied !== activation.n) {
        this.#emit(encodeReply(h, frame?.applied ?? 0, [], { type: 'diverged' }))
        return undefined
      }
      frame.isActive = true
      return { frame, activation, position: 0 }
    }
    const body = this.#find(start)
    if (body === undefined) {
      const message = `orchestration '${start.name}' version ${start.version} is not registered`
      const error = encodeError(new HoldfastError(message, { code: 'UNREGISTERED' }))
      this.#emit(encodeReply(h, 0, [], { type: 'failed', error }))
      return undefined
    }
    const frame = new Frame(h, start, this.#payloadLimit)
    this.#frames.set(h, frame)
    frame.begin(body)
    // A fresh async function must come to a stand before its first fact.
    return { frame, activation, position: frame.isAsync ? -1 : 0 }
  }

  /** Goes one fact on; true when the activation is answered. A defect in one frame is that frame's end only. */
  #step(run: Run): boolean {
    try {
      return this.#advance(run)
    } catch (error) {
      const { id, applied } = run.frame
      this.#frames.delete(id)
      this.#emit(encodeReply(id, applied, [], { type: 'failed', error: encodeError(error) }))
      return true
    }
  }

  /** Applies facts until code of an async function may run (a generator: all of them). True when the activation is answered. */
  #advance(run: Run): boolean {
    const { frame, activation } = run
    if (run.position < 0) {
      run.position = 0
      return false
    }
    while (!frame.isEnded && run.position < activation.f.length) {
      const fact = activation.f[run.position]
      if (fact === undefined) break
      frame.isReplaying = run.position < activation.r
      run.position += 1
      frame.takeStir()
      frame.apply(fact)
      if (frame.isAsync && !frame.isEnded && frame.takeStir()) return false
    }
    frame.isReplaying = false
    if (frame.isOver) this.#frames.delete(frame.id)
    this.#emit(frame.reply())
    return true
  }
}
