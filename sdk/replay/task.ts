/**
 * Tasks: what an orchestration yields or awaits. One object per step, lazy: the command is given when the task is yielded,
 * awaited, or put in an `all` or `race` that starts. A task never runs user code by itself; it only tells its listeners.
 */
import { CancelledError } from '../errors.js'
import { MAX_TAG_NAME_BYTES, checkName, invalidArgument, kindOf } from '../ids.js'
import type { CommandSpec } from './encode.js'

/**
 * A step of an orchestration. `yield` it, `yield*` it (which keeps the type), or `await` it.
 *
 * @example
 * const receipt = await ctx.scheduleActivity(charge, order)     // async function
 * const receipt = yield* ctx.scheduleActivity(charge, order)    // generator function
 */
export interface Task<T = unknown> extends PromiseLike<T> {
  /** Lets a generator write `yield* task` and get the result with its type. */
  [Symbol.iterator](): Generator<Task<T>, T, unknown>
  /** Like `Promise.prototype.catch`. */
  catch<R = never>(onRejected?: ((reason: unknown) => R | PromiseLike<R>) | null): Promise<T | R>
  /** Like `Promise.prototype.finally`. */
  finally(onFinally?: (() => void) | null): Promise<T>
}

/** A task that runs an activity. */
export interface ActivityTask<T = unknown> extends Task<T> {
  /** Routing label, if any. */
  readonly tag: string | undefined
  /** Sets the routing label and returns this same task. */
  withTag(tag: string): this
}

/** What the frame does for its tasks. */
export interface TaskHost {
  /** Gives the task's command. */
  issue(task: CommandTask): void
  /** Takes an open command back because its task lost a race. */
  withdraw(task: CommandTask): void
  /** Ends the execution as the next one. */
  continueAsNew(input: string, version: string | undefined): void
  /** A promise of a task was settled: code that awaits it will run. */
  stir(): void
  /** The error that every task gets once the instance is cancelled. */
  readonly cancellation: CancelledError | undefined
}

type Listener = (task: TaskNode) => void
type State = 'idle' | 'open' | 'done' | 'failed' | 'lost'

const TASK = Symbol.for('holdfast.task')

/** True for a task of any copy of this package. */
export function isTask(value: unknown): value is TaskNode {
  return typeof value === 'object' && value !== null && TASK in value
}

/** Base of all tasks. */
export abstract class TaskNode<T = unknown> implements Task<T> {
  /** How far the task is; `lost` means that it lost a race while it was open. */
  state: State = 'idle'
  /** Its result when done. */
  value: unknown
  /** Its error when failed or lost. */
  error: unknown
  /** Set once a generator has been given the result by yielding this very task. */
  isConsumed = false
  #listeners: Listener[] = []
  #promise: Promise<T> | undefined
  #settle: (() => void) | undefined

  constructor(protected readonly host: TaskHost) {}

  static {
    Object.defineProperty(this.prototype, TASK, { value: true })
  }

  /** Gives the command or starts the parts. */
  protected abstract begin(): void
  /** Takes back what is still open. */
  protected abstract abandon(): void

  get isSettled(): boolean {
    return this.state !== 'idle' && this.state !== 'open'
  }

  /** Starts the task unless it has started. */
  start(): void {
    if (this.state !== 'idle') return
    this.state = 'open'
    this.begin()
  }

  /** Starts the task as a part of an `all` or `race`: one that lost an earlier race runs anew. */
  startAgain(): void {
    if (this.state === 'lost') this.renew()
    this.start()
  }

  /** Starts the task for a generator's yield: yielding a task whose result was already given runs it anew. */
  startForYield(): void {
    if (this.isConsumed) this.rerun()
    this.startAgain()
  }

  /** Back to the beginning, with all parts. */
  rerun(): void {
    if (this.isSettled) this.renew()
  }

  /** Back to the beginning; parts that are settled keep their results. */
  renew(): void {
    this.state = 'idle'
    this.isConsumed = false
    this.value = undefined
    this.error = undefined
    this.#promise = undefined
    this.#settle = undefined
  }

  /** Tells `listener` when the task is settled. */
  listen(listener: Listener): void {
    this.#listeners.push(listener)
  }

  succeed(value: unknown): void {
    if (this.isSettled) return
    this.value = value
    this.#finish('done')
  }

  fail(error: unknown): void {
    if (this.isSettled) return
    this.error = error
    this.#finish('failed')
  }

  /** The task lost a race: what is open is taken back. */
  lose(): void {
    if (this.state !== 'open') return
    this.error = new CancelledError('the task lost a race and was cancelled', { code: 'CANCELLED' })
    this.abandon()
    this.#finish('lost')
  }

  #finish(state: State): void {
    this.state = state
    const listeners = this.#listeners
    this.#listeners = []
    for (const listener of listeners) listener(this)
    this.#settle?.()
  }

  #asPromise(): Promise<T> {
    if (this.#promise === undefined) {
      this.#promise = new Promise<T>((resolve, reject) => {
        // Results are parsed JSON and never thenable.
        this.#settle = () => {
          this.host.stir()
          if (this.state === 'done') resolve(this.value as T)
          else reject(this.error as Error)
        }
      })
      if (this.isSettled) this.#settle?.()
      else this.start()
    }
    return this.#promise
  }

  then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#asPromise().then(onFulfilled, onRejected)
  }

  catch<R = never>(onRejected?: ((reason: unknown) => R | PromiseLike<R>) | null): Promise<T | R> {
    return this.#asPromise().catch(onRejected)
  }

  finally(onFinally?: (() => void) | null): Promise<T> {
    return this.#asPromise().finally(onFinally)
  }

  *[Symbol.iterator](): Generator<Task<T>, T, unknown> {
    return (yield this) as T
  }
}

/** A task that is one command. */
export class CommandTask<T = unknown> extends TaskNode<T> {
  /** Number of the command once it was given. */
  seq = -1

  constructor(
    host: TaskHost,
    readonly spec: CommandSpec,
  ) {
    super(host)
  }

  protected begin(): void {
    this.host.issue(this)
  }

  protected abandon(): void {
    this.host.withdraw(this)
  }
}

/** A task that runs an activity. */
export class ActivityCommandTask<T = unknown> extends CommandTask<T> implements ActivityTask<T> {
  tag: string | undefined

  withTag(tag: string): this {
    this.tag = checkName(tag, 'tag', MAX_TAG_NAME_BYTES)
    return this
  }
}

/** Ends the execution; never settles. */
export class ContinueTask extends TaskNode<never> {
  constructor(
    host: TaskHost,
    private readonly input: string,
    private readonly version: string | undefined,
  ) {
    super(host)
  }

  protected begin(): void {
    this.host.continueAsNew(this.input, this.version)
  }

  protected abandon(): void {}
}

/** Checks the parts of an `all` or `race`: tasks of this context, or plain values that need no waiting. */
export function checkParts(parts: readonly unknown[], what: string): readonly unknown[] {
  for (const [index, part] of parts.entries()) {
    if (isTask(part)) continue
    if (typeof part === 'object' && part !== null && typeof (part as { then?: unknown }).then === 'function') {
      throw invalidArgument(
        `argument ${index} of ${what} is a promise; only tasks of the orchestration's context can be put there (Promise.all and Promise.race take both)`,
      )
    }
    if (typeof part === 'function' || typeof part === 'symbol') {
      throw invalidArgument(`argument ${index} of ${what} is ${kindOf(part)}, not a task`)
    }
  }
  return parts
}

function rerunParts(parts: readonly unknown[]): void {
  for (const part of parts) if (isTask(part)) part.rerun()
}

/** What `all` says about one part: its value, or the text of its error (with the error itself as `reason`, not enumerable). */
export type Settled<T> = { ok: T; err?: undefined } | { err: string; readonly reason: Error; ok?: undefined }

/** What `race` says: which part came first and its value; when it failed, the text of its error and `error: true`. */
export type RaceResult<T> =
  | { index: number; value: T; error?: undefined }
  | { index: number; value: string; error: true; readonly reason: Error }

/** All parts, in argument order; never fails, except when the instance is cancelled. */
export class AllTask extends TaskNode<unknown[]> {
  #left = 0

  constructor(
    host: TaskHost,
    private readonly parts: readonly unknown[],
  ) {
    super(host)
  }

  protected begin(): void {
    const tasks = this.parts.filter(isTask)
    // Parts that settle while others are still being started must not end the whole too early.
    this.#left = tasks.length + 1
    const count = (): void => {
      this.#left -= 1
      if (this.host.cancellation !== undefined) this.fail(this.host.cancellation)
      else if (this.#left === 0) this.succeed(this.parts.map(settledOf))
    }
    for (const task of tasks) {
      task.startAgain()
      if (task.isSettled) count()
      else task.listen(count)
    }
    count()
  }

  protected abandon(): void {
    for (const part of this.parts) if (isTask(part)) part.lose()
  }

  override rerun(): void {
    super.rerun()
    rerunParts(this.parts)
  }
}

/** The first part that is settled; the others are taken back. Parts after one that is ready at once are not started. */
export class RaceTask extends TaskNode<RaceResult<unknown>> {
  #isDecided = false

  constructor(
    host: TaskHost,
    private readonly parts: readonly unknown[],
  ) {
    super(host)
  }

  protected begin(): void {
    this.#isDecided = false
    for (const [index, part] of this.parts.entries()) {
      if (isTask(part)) {
        part.startAgain()
        if (!part.isSettled) {
          part.listen(() => this.#won(index))
          continue
        }
      }
      this.#won(index)
      return
    }
  }

  #won(index: number): void {
    if (this.state !== 'open' || this.#isDecided) return
    if (this.host.cancellation !== undefined) {
      this.fail(this.host.cancellation)
      return
    }
    this.#isDecided = true
    const result = raceResultOf(this.parts[index], index)
    this.#withdrawLosers(index)
    this.succeed(result)
  }

  #withdrawLosers(winner: number): void {
    for (const [index, part] of this.parts.entries()) if (index !== winner && isTask(part)) part.lose()
  }

  protected abandon(): void {
    for (const part of this.parts) if (isTask(part)) part.lose()
  }

  override rerun(): void {
    super.rerun()
    rerunParts(this.parts)
  }
}

function settledOf(part: unknown): Settled<unknown> {
  if (!isTask(part)) return { ok: part ?? null }
  return part.state === 'done' ? { ok: part.value } : withReason({ err: textOf(part.error) }, part.error)
}

function raceResultOf(part: unknown, index: number): RaceResult<unknown> {
  if (!isTask(part)) return { index, value: part ?? null }
  if (part.state === 'done') return { index, value: part.value }
  return withReason({ index, value: textOf(part.error), error: true as const }, part.error)
}

function withReason<R extends object>(result: R, error: unknown): R & { readonly reason: Error } {
  return Object.defineProperty(result, 'reason', { value: error }) as R & { readonly reason: Error }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
