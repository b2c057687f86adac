/**
 * Drives a generator: hands it the result of each task that it yields, until a task is not settled yet.
 *
 * Runs synchronously. A yielded value that is no task of the context is thrown back as an error, except what `utcNow`,
 * `newGuid` and `random` gave. A returned task counts as yielded: an async function would await it, too.
 */
import { HoldfastError } from '../errors.js'
import { type TaskNode, isTask } from './task.js'

/** Values of `utcNow`, `newGuid` and `random` that a generator may still yield. */
const MAX_HANDED_OUT = 256

/** What the generator runs in. */
export interface GeneratorHost {
  readonly start: { readonly name: string }
  readonly isEnded: boolean
  completed(value: unknown): void
  failed(error: unknown): void
}

export class GeneratorRun {
  readonly #host: GeneratorHost
  readonly #generator: Iterator<unknown, unknown, unknown>
  readonly #handedOut: HandedOut
  #awaited: TaskNode | undefined
  #isReturn = false

  constructor(host: GeneratorHost, generator: Iterator<unknown, unknown, unknown>, handedOut: HandedOut) {
    this.#host = host
    this.#generator = generator
    this.#handedOut = handedOut
  }

  /** The task that the generator waits for. */
  get awaited(): TaskNode | undefined {
    return this.#awaited
  }

  /** Runs to the first wait. */
  begin(): void {
    this.#resume(() => this.#generator.next())
  }

  /** Goes on when the awaited task is settled. */
  goOn(): void {
    const task = this.#awaited
    if (task === undefined || !task.isSettled) return
    this.#awaited = undefined
    this.#resume(() => this.#give(task, this.#isReturn))
  }

  /** Waits for nothing any more. */
  stop(): void {
    this.#awaited = undefined
  }

  #resume(step: () => IteratorResult<unknown, unknown>): void {
    try {
      for (let next = step(); ; ) {
        if (this.#host.isEnded) return
        if (next.done === true && !isTask(next.value)) {
          this.#host.completed(next.value)
          return
        }
        const yielded = next.value
        const isReturned = next.done === true
        if (!isTask(yielded)) {
          next = this.#passThrough(yielded)
          continue
        }
        yielded.startForYield()
        if (!yielded.isSettled) {
          this.#awaited = yielded
          this.#isReturn = isReturned
          return
        }
        if (this.#host.isEnded) return
        next = this.#give(yielded, isReturned)
      }
    } catch (error) {
      this.#host.failed(error)
    }
  }

  /** Hands the result of a settled task to the generator, or ends with it when the task was returned. */
  #give(task: TaskNode, isReturned: boolean): IteratorResult<unknown, unknown> {
    task.isConsumed = true
    if (isReturned) {
      if (task.state !== 'done') throw task.error
      return { done: true, value: task.result }
    }
    return task.state === 'done' ? this.#generator.next(task.result) : this.#throw(task.error)
  }

  #passThrough(value: unknown): IteratorResult<unknown, unknown> {
    if (this.#handedOut.has(value)) return this.#generator.next(value)
    const isPromise = typeof value === 'object' && value !== null && 'then' in value
    const message =
      `Invalid generator step result: orchestration '${this.#host.start.name}' yielded ${isPromise ? 'a promise' : describe(value)}; ` +
      'yield only what its context gives (ctx.scheduleActivity, ctx.scheduleTimer, ctx.waitForEvent, ctx.all, ctx.race, …)'
    return this.#throw(new HoldfastError(message, { code: 'INVALID_YIELD' }))
  }

  #throw(error: unknown): IteratorResult<unknown, unknown> {
    if (this.#generator.throw === undefined) throw error
    return this.#generator.throw(error)
  }
}

/** Values that were handed out and may be yielded. */
export class HandedOut {
  #values: Set<unknown> | undefined

  add<T extends number | string>(value: T): T {
    this.#values ??= new Set()
    if (this.#values.size >= MAX_HANDED_OUT) this.#values.clear()
    this.#values.add(value)
    return value
  }

  has(value: unknown): boolean {
    return this.#values?.has(value) === true
  }
}

/** True for a generator. */
export function isGenerator(value: unknown): value is Iterator<unknown, unknown, unknown> {
  if (typeof value !== 'object' || value === null) return false
  return Symbol.iterator in value && typeof (value as { next?: unknown }).next === 'function' && !isTask(value)
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  return typeof value === 'object' ? 'an object' : `a ${typeof value} (${String(value).slice(0, 40)})`
}
