/**
 * Tasks: what an orchestration yields or awaits. One object per step, lazy: the command is given when the task is yielded,
 * awaited, or put in an `all` or `race` that starts. A task never runs user code by itself; it only tells its listeners.
 */
import { CancelledError } from '../errors.js'
import { MAX_TAG_NAME_BYTES, checkName } from '../ids.js'
import { TASK } from '../payload.js'
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
  /** A task was made; until it is used the code may have forgotten to await it. */
  made(task: TaskNode): void
  /** A task was started, or put in an `all` or `race`. */
  used(task: TaskNode): void
  /** The error that every task gets that is open when the instance is cancelled. */
  readonly cancellation: CancelledError | undefined
}

type Listener = (task: TaskNode) => void
type State = 'idle' | 'open' | 'done' | 'failed' | 'lost'

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
  /** Set for the typed calls: a result that is a text is read as JSON once more when it is handed to the code. */
  isTyped = false
  #listeners: Listener[] | undefined
  #promise: Promise<T> | undefined
  #settle: (() => void) | undefined

  constructor(protected readonly host: TaskHost) {
    host.made(this as TaskNode)
  }

  static {
    Object.defineProperty(this.prototype, TASK, { value: true })
  }

  /** What the task is, in words. */
  abstract get title(): string
  /** Gives the command or starts the parts. */
  protected abstract begin(): void
  /** Takes back what is still open. */
  protected abstract abandon(): void

  get isSettled(): boolean {
    return this.state !== 'idle' && this.state !== 'open'
  }

  /** The result as the code gets it. */
  get result(): unknown {
    return this.isTyped ? this.reread(this.value) : this.value
  }

  /** A result of a typed call. */
  protected reread(value: unknown): unknown {
    return readAgain(value)
  }

  /** Starts the task unless it has started. */
  start(): void {
    if (this.state !== 'idle') return
    this.state = 'open'
    this.host.used(this as TaskNode)
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
    ;(this.#listeners ??= []).push(listener)
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
    this.#listeners = undefined
    if (listeners !== undefined) for (const listener of listeners) listener(this)
    this.#settle?.()
  }

  #asPromise(): Promise<T> {
    if (this.#promise === undefined) {
      this.#promise = new Promise<T>((resolve, reject) => {
        // Results are parsed JSON and never thenable.
        this.#settle = () => {
          this.host.stir()
          if (this.state === 'done') resolve(this.result as T)
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

/** A text that is JSON as its value; anything else as it is. */
export function readAgain(value: unknown): unknown {
  if (typeof value !== 'string') return value
  try {
    return JSON.parse(value)
  } catch {
    return value
  }
}

/** Commands in words. */
const WORDS: Readonly<Record<CommandSpec['type'], string>> = {
  activity: 'activity',
  timer: 'timer',
  event: 'wait for event',
  queue: 'wait for queue',
  child: 'sub-orchestration',
  detached: 'start of orchestration',
  read: 'read of value',
  local: 'step',
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

  get title(): string {
    const { spec } = this
    if (spec.type === 'timer') return `${WORDS.timer} of ${spec.delayMs} ms`
    return `${WORDS[spec.type]} '${spec.type === 'read' ? spec.key : spec.name}'`
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

  get title(): string {
    return 'continueAsNew'
  }

  protected begin(): void {
    this.host.continueAsNew(this.input, this.version)
  }

  protected abandon(): void {}
}
