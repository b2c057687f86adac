/**
 * The driver: runs a batch of activations and emits one reply for each.
 *
 * Generators run to their end of facts synchronously. Async functions of one batch go in rounds: facts up to the first that
 * lets code run, then one `setImmediate`, which comes after all microtasks, for all of them together. So a fan-in of thousands
 * is one round. An error in one frame never reaches another.
 */
import { reportDefect } from '../answers.js'
import { encodeError } from '../error-payload.js'
import { abandoned, encodeReply, unregistered } from './encode.js'
import { Frame, type FrameBody } from './frame.js'
import { InPlace, barrier } from './in-place.js'
import type { LocalTask } from './local.js'
import type { Activation, ActivationStart } from './wire.js'

/** Finds the code of an orchestration; undefined when it is not registered. */
export type BodyFinder = (start: ActivationStart) => FrameBody | undefined

/** One activation under way. */
interface Run {
  readonly frame: Frame
  readonly activation: Activation
  position: number
}

/** What became of an activation: answered, on its way, or answered once its local steps have ended. */
type Step = 'answered' | 'goes on' | Promise<void>

export class Driver {
  readonly #frames = new Map<number, Frame>()
  readonly #inPlace = new Map<number, InPlace>()
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

  /** Forgets frames; their `finally` blocks do not run, local steps of theirs are told to stop. */
  evict(ids: readonly number[]): void {
    for (const id of ids) {
      this.#inPlace.get(id)?.stop()
      this.#inPlace.delete(id)
      this.#frames.delete(id)
    }
  }

  /** Tells all local steps to stop: nobody waits for their turns any more. */
  stop(): void {
    this.evict([...this.#inPlace.keys()])
  }

  /** Runs a batch. The promise, given only when an async function is among it, resolves when all replies are out. */
  run(batch: readonly Activation[]): Promise<void> | undefined {
    const rounds: Run[] = []
    const waits: Promise<void>[] = []
    for (const activation of batch) {
      const run = this.#opened(activation)
      if (run === undefined) continue
      const result = this.#step(run)
      if (result === 'goes on') rounds.push(run)
      else if (result !== 'answered') waits.push(result)
    }
    if (rounds.length > 0) waits.push(this.#rounds(rounds))
    return waits.length === 0 ? undefined : Promise.all(waits).then(() => {})
  }

  async #rounds(runs: Run[]): Promise<void> {
    let live = runs
    const late: Promise<void>[] = []
    while (live.length > 0) {
      await barrier()
      live = live.filter((run) => {
        const result = this.#step(run, true)
        if (result !== 'goes on' && result !== 'answered') late.push(result)
        return result === 'goes on'
      })
    }
    await Promise.all(late)
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
      this.#emit(unregistered(h))
      return undefined
    }
    const frame = new Frame(h, start, this.#payloadLimit)
    this.#frames.set(h, frame)
    frame.begin(body)
    // A fresh async function must come to a stand before its first fact.
    return { frame, activation, position: frame.isAsync ? -1 : 0 }
  }

  /** An activation that cannot be taken up is replayed in a later turn: its neighbours go on. */
  #opened(activation: Activation): Run | undefined {
    try {
      return this.#open(activation)
    } catch (error) {
      reportDefect(error)
      this.#frames.delete(activation.h)
      this.#emit(abandoned(activation.h))
      return undefined
    }
  }

  /** Goes one fact on. A defect in one frame is that frame's end only. */
  #step(run: Run, hasRun = false): Step {
    try {
      if (hasRun) run.frame.checkForeign()
      return this.#advance(run)
    } catch (error) {
      this.#broken(run.frame, error)
      return 'answered'
    }
  }

  #broken(frame: Frame, error: unknown): void {
    this.#frames.delete(frame.id)
    this.#emit(encodeReply(frame.id, frame.applied, [], { type: 'failed', error: encodeError(error) }))
  }

  /** Applies facts until code of an async function may run (a generator: all of them). */
  #advance(run: Run): Step {
    const { frame, activation } = run
    if (run.position < 0) {
      run.position = 0
      return 'goes on'
    }
    while (!frame.isEnded && run.position < activation.f.length) {
      const fact = activation.f[run.position]
      if (fact === undefined) break
      frame.isReplaying = run.position < activation.r
      run.position += 1
      frame.takeStir()
      frame.apply(fact)
      if (frame.isAsync && !frame.isEnded && frame.takeStir()) return 'goes on'
    }
    frame.isReplaying = false
    const steps = frame.isEnded ? [] : frame.takeLocals()
    if (steps.length > 0 && activation.l === true) return this.#declined(frame)
    if (steps.length > 0) return this.#runInPlace(frame, steps)
    this.#reply(frame)
    return 'answered'
  }

  /** A local step runs under a lease only: the turn is claimed and replayed. */
  #declined(frame: Frame): Step {
    this.#frames.delete(frame.id)
    this.#emit(abandoned(frame.id))
    return 'answered'
  }

  #reply(frame: Frame): void {
    if (frame.isEnded) this.#frames.delete(frame.id)
    this.#emit(frame.reply())
  }

  /** Runs local steps until the code wants no more of them, then answers; other activations go their own way. */
  async #runInPlace(frame: Frame, first: readonly LocalTask[]): Promise<void> {
    const steps = new InPlace(frame)
    this.#inPlace.set(frame.id, steps)
    try {
      if (await steps.run(first)) this.#reply(frame)
    } catch (error) {
      this.#broken(frame, error)
    } finally {
      if (this.#inPlace.get(frame.id) === steps) this.#inPlace.delete(frame.id)
    }
  }
}
