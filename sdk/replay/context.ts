/**
 * The context of an orchestration: everything that its code may ask for. Each `schedule…` gives a lazy task; the others act
 * or answer at once. All of it replays: nothing here looks at a clock or at chance.
 *
 * length: the one class with all that orchestration code can call; each member is short.
 */
import { type ActivityDefinition, type EventDefinition, type InputArguments, type OrchestrationDefinition, checkFunction, nameOf } from '../define.js'
import type { CancelledError } from '../errors.js'
import { MAX_STATUS_BYTES, MAX_TAG_NAME_BYTES, checkActivityName, checkChildId, checkInstanceId, checkName, checkNewInstanceId, checkVersion, checkWhole, invalidArgument, kindOf } from '../ids.js'
import { encode } from '../payload.js'
import { type ActivityRetryPolicy, type RetryPolicy, encodeRetry, fromActivityRetry, withHeartbeat } from '../retry.js'
import { type TraceLevel, trace } from '../trace.js'
import { textOf } from '../text.js'
import type { Frame } from './frame.js'
import { AllTask, type RaceResult, RaceTask, type Settled, checkParts } from './joins.js'
import { LocalTask, type StepFunction, type StepOptions } from './local.js'
import { ActivityCommandTask, type ActivityTask, CommandTask, ContinueTask, type Task } from './task.js'
import { TypedSteps } from './typed.js'
import { checkKey } from './values.js'

/** How an activity is to be run. */
export interface ActivityOptions {
  /** Activities with the same session id run on the same node while it lives and the session is used; see docs/sessions.md. */
  sessionId?: string
  /** Routing label: only nodes whose `workerTagFilter` takes it run the activity; see docs/tags.md. */
  tag?: string
  /** When and how often it is tried again. Default: not at all. */
  retry?: RetryPolicy
  /** Time limit of one try, in ms, from the start of its body: then its signal, and it fails with {@link TimeoutError}. */
  timeoutMs?: number
  /** Longest time between two calls of `ctx.heartbeat` within one try, in ms; a second or more. Default: none. */
  heartbeatTimeoutMs?: number
}

/** The result type of a part of `all` or `race`: of a task its result, of a plain value the value. */
export type ResultOf<P> = P extends Task<infer T> ? T : P

/**
 * What an orchestration is given.
 *
 * @example
 * runtime.registerOrchestration('checkout', async (ctx, order) => {
 *   const receipt = await ctx.scheduleActivity('charge', order)
 *   await ctx.scheduleActivity('mail', receipt)
 *   return receipt
 * })
 */
export class OrchestrationContext extends TypedSteps {
  readonly #frame: Frame
  /** Id of the instance. */
  readonly instanceId: string
  /** Number of the execution, from 1; continue-as-new starts the next. */
  readonly executionId: number
  /** Name of the orchestration. */
  readonly orchestrationName: string
  /** Exact version that runs. */
  readonly orchestrationVersion: string
  /** Id of the instance that started this one and waits for it, if any. */
  readonly parentInstanceId: string | undefined

  /** @internal */
  constructor(frame: Frame) {
    super()
    this.#frame = frame
    const { start } = frame
    this.instanceId = start.instance
    this.executionId = start.execution
    this.orchestrationName = start.name
    this.orchestrationVersion = start.version
    this.parentInstanceId = start.parent
  }

  /** True while recorded history is replayed: the code has been here before. Never branch on it; it is meant for logging. */
  get isReplaying(): boolean {
    return this.#frame.isReplaying
  }

  /** True once the instance was asked to cancel: the code has a while to clean up, then it ends as cancelled. */
  get isCancelled(): boolean {
    return this.#frame.cancellation !== undefined
  }

  /** The error that every wait got when the instance was cancelled; undefined before. */
  get cancellation(): CancelledError | undefined {
    return this.#frame.cancellation
  }

  /** Runs an activity. */
  scheduleActivity<O = unknown, I = unknown>(
    activity: string | ActivityDefinition<I, O>,
    ...rest: InputArguments<I, [options?: ActivityOptions]>
  ): ActivityTask<O> {
    return this.#activity<O>(activity, rest[0], rest[1])
  }

  /** Runs an activity of a session; see {@link ActivityOptions.sessionId}. */
  scheduleActivityOnSession<O = unknown, I = unknown>(
    activity: string | ActivityDefinition<I, O>,
    input: NoInfer<I>,
    sessionId: string,
  ): ActivityTask<O> {
    return this.#activity<O>(activity, input, { sessionId })
  }

  /** Runs an activity with a retry policy; see {@link ActivityRetryPolicy} for what its backoff words stand for. */
  scheduleActivityWithRetry<O = unknown, I = unknown>(
    activity: string | ActivityDefinition<I, O>,
    input: NoInfer<I>,
    retry: ActivityRetryPolicy,
  ): ActivityTask<O> {
    return this.#activity<O>(activity, input, { retry: fromActivityRetry(retry, 'retry policy') })
  }

  /** Runs an activity of a session with a retry policy. */
  scheduleActivityWithRetryOnSession<O = unknown, I = unknown>(
    activity: string | ActivityDefinition<I, O>,
    input: NoInfer<I>,
    retry: ActivityRetryPolicy,
    sessionId: string,
  ): ActivityTask<O> {
    return this.#activity<O>(activity, input, { sessionId, retry: fromActivityRetry(retry, 'retry policy') })
  }

  #activity<O>(activity: unknown, input: unknown, options: ActivityOptions | null | undefined): ActivityTask<O> {
    const name = nameOf(activity, 'activity', 'activity name')
    const { sessionId, tag, timeoutMs, ...rest } = checkOptions<ActivityOptions>(options, `options of activity '${name}'`, ACTIVITY_OPTIONS)
    const retry = withHeartbeat(rest.retry, rest.heartbeatTimeoutMs)
    const task = new ActivityCommandTask<O>(this.#frame, {
      type: 'activity',
      name,
      input: this.#encode(input, `input of activity '${name}'`),
      session: sessionId === undefined ? undefined : checkName(sessionId, 'session id'),
      retry: retry === undefined ? undefined : encodeRetry(retry, `retry policy of activity '${name}'`),
      timeoutMs: timeoutMs === undefined ? undefined : checkWhole(timeoutMs, 'timeoutMs', 1),
    })
    if (tag !== undefined) task.tag = checkName(tag, 'tag', MAX_TAG_NAME_BYTES)
    return task
  }

  /** Waits for a time; gives null. */
  scheduleTimer(delayMs: number): Task<null> {
    return new CommandTask<null>(this.#frame, { type: 'timer', delayMs: checkWhole(delayMs, 'delayMs', 0) })
  }

  /** Waits for a one-shot event; one that was raised earlier and not yet read is taken at once. */
  waitForEvent<T = unknown>(event: string | EventDefinition<T>): Task<T> {
    return new CommandTask<T>(this.#frame, { type: 'event', name: nameOf(event, 'event', 'event name') })
  }

  /** Takes the next message of a queue, first in, first out. */
  dequeueEvent<T = unknown>(queue: string | EventDefinition<T>): Task<T> {
    return new CommandTask<T>(this.#frame, { type: 'queue', name: nameOf(queue, 'event', 'queue name') })
  }

  /** Starts a child and waits for its end; its id is made from this instance's. */
  scheduleSubOrchestration<O = unknown, I = unknown>(
    orchestration: string | OrchestrationDefinition<I, O>,
    ...rest: InputArguments<I>
  ): Task<O> {
    return this.#child<O>(orchestration, undefined, undefined, rest[0])
  }

  /** The same with an id of your own. */
  scheduleSubOrchestrationWithId<O = unknown, I = unknown>(
    orchestration: string | OrchestrationDefinition<I, O>,
    instanceId: string,
    ...rest: InputArguments<I>
  ): Task<O> {
    return this.#child<O>(orchestration, undefined, checkChildId(instanceId), rest[0])
  }

  /** The same with an exact version; none means the newest. */
  scheduleSubOrchestrationVersioned<O = unknown, I = unknown>(
    orchestration: string | OrchestrationDefinition<I, O>,
    version: string | null | undefined,
    ...rest: InputArguments<I>
  ): Task<O> {
    return this.#child<O>(orchestration, version, undefined, rest[0])
  }

  /** The same with an exact version and an id of your own. */
  scheduleSubOrchestrationVersionedWithId<O = unknown, I = unknown>(
    orchestration: string | OrchestrationDefinition<I, O>,
    version: string | null | undefined,
    instanceId: string,
    ...rest: InputArguments<I>
  ): Task<O> {
    return this.#child<O>(orchestration, version, checkChildId(instanceId), rest[0])
  }

  #child<O>(orchestration: unknown, version: string | null | undefined, instance: string | undefined, input: unknown): Task<O> {
    const name = nameOf(orchestration, 'orchestration', 'orchestration name')
    return new CommandTask<O>(this.#frame, {
      type: 'child',
      name,
      version: exact(version, orchestration),
      instance,
      input: this.#encode(input, `input of orchestration '${name}'`),
    })
  }

  /** Starts an orchestration that nobody waits for; gives null at once. */
  startOrchestration<I = unknown>(
    orchestration: string | OrchestrationDefinition<I, unknown>,
    instanceId: string,
    ...rest: InputArguments<I>
  ): Task<null> {
    return this.#detached(orchestration, undefined, instanceId, rest[0])
  }

  /** The same with an exact version; none means the newest. */
  startOrchestrationVersioned<I = unknown>(
    orchestration: string | OrchestrationDefinition<I, unknown>,
    version: string | null | undefined,
    instanceId: string,
    ...rest: InputArguments<I>
  ): Task<null> {
    return this.#detached(orchestration, version, instanceId, rest[0])
  }

  #detached(orchestration: unknown, version: string | null | undefined, instanceId: string, input: unknown): Task<null> {
    const name = nameOf(orchestration, 'orchestration', 'orchestration name')
    if (typeof instanceId === 'object' && instanceId !== null && 'type' in instanceId) {
      throw invalidArgument('instance id must be a string, not a definition: the order is (orchestration, instanceId, input)')
    }
    return new CommandTask<null>(this.#frame, {
      type: 'detached',
      name,
      version: exact(version, orchestration),
      instance: checkNewInstanceId(instanceId),
      input: this.#encode(input, `input of orchestration '${name}'`),
    })
  }

  /**
   * Runs a function in place, in this process and this turn, and records its result like that of an activity: on replay the
   * result is given and the function does not run. For short things of the same file; the turn is held until it ends, and
   * when the process dies before the turn is committed it runs again. Its name and place must stay the same.
   *
   * @example
   * const token = await ctx.step('make-token', () => randomUUID())
   * const page = await ctx.step('fetch', ({ signal }) => fetch(url, { signal }).then((r) => r.text()), { retry: { maxAttempts: 3 } })
   */
  step<T>(name: string, fn: StepFunction<T>, options?: StepOptions): Task<Awaited<T>> {
    const title = checkActivityName(name, 'step name')
    checkFunction(fn, `step '${title}'`)
    const { retry } = checkOptions<StepOptions>(options, `options of step '${title}'`, STEP_OPTIONS)
    if (retry !== undefined) encodeRetry(retry, `retry policy of step '${title}'`)
    return new LocalTask<Awaited<T>>(this.#frame, title, fn, retry === undefined ? undefined : { ...retry })
  }

  /** Ends this execution and starts the next one with an empty history; code after it does not run. */
  continueAsNew(input?: unknown): Task<never> {
    return new ContinueTask(this.#frame, this.#encode(input, 'input of continueAsNew'), undefined)
  }

  /** The same with an exact version; none means the newest. */
  continueAsNewVersioned(input: unknown, version: string | null | undefined): Task<never> {
    return new ContinueTask(this.#frame, this.#encode(input, 'input of continueAsNew'), exact(version, undefined))
  }

  /** Waits for all parts: `{ ok }` or `{ err }` for each, in argument order. */
  all<const P extends readonly unknown[]>(parts: P): Task<{ -readonly [K in keyof P]: Settled<ResultOf<P[K]>> }> {
    if (!Array.isArray(parts) || arguments.length > 1) throw invalidArgument('ctx.all takes an array of tasks: ctx.all([a, b])')
    const task = new AllTask(this.#frame, checkParts([...parts], 'ctx.all'))
    return task as unknown as Task<{ -readonly [K in keyof P]: Settled<ResultOf<P[K]>> }>
  }

  /** Waits for the first part; the others are cancelled. */
  race<P extends readonly unknown[]>(...parts: P): Task<RaceResult<ResultOf<P[number]>>> {
    if (parts.length === 0) throw invalidArgument('ctx.race needs at least one task')
    if (parts.length === 1 && Array.isArray(parts[0])) {
      throw invalidArgument('ctx.race takes tasks as arguments, not an array of them: ctx.race(a, b), or ctx.race(...tasks)')
    }
    const task = new RaceTask(this.#frame, checkParts(parts, 'ctx.race'))
    return task as unknown as Task<RaceResult<ResultOf<P[number]>>>
  }

  /** Sets the text that `getStatus` shows for this instance. An object is refused: give its JSON. */
  setCustomStatus(status: string): void {
    const text = textOf(status, 'custom status')
    if (Buffer.byteLength(text) > MAX_STATUS_BYTES) throw invalidArgument(`custom status is longer than ${MAX_STATUS_BYTES} bytes`)
    if (text.includes('\0') || !text.isWellFormed()) throw invalidArgument('custom status must be well-formed Unicode without NUL')
    this.#frame.setStatus(text)
  }

  /** Removes the custom status. */
  resetCustomStatus(): void {
    this.#frame.setStatus(null)
  }

  /** The custom status as this execution sees it. */
  getCustomStatus(): string | null {
    return this.#frame.customStatus
  }

  /**
   * Keeps a text (of anything else but an object `String(value)`) under a key of this instance. Clients read it with `client.getValue` once
   * the turn is committed; it stays over continue-as-new and after the end. At most 150 keys with 64 KiB each: a call that
   * goes over throws (code `LIMIT_EXCEEDED`) and changes nothing.
   */
  setValue(key: string, value: string): void {
    const checked = checkKey(key)
    this.#frame.setValue(checked, this.#frame.values.checked(checked, value))
  }

  /** The value under a key, as set so far by this instance; null when there is none. */
  getValue(key: string): string | null {
    return this.#frame.values.get(checkKey(key))
  }

  /** Drops the value of a key. */
  clearValue(key: string): void {
    this.#frame.clearValue(checkKey(key))
  }

  /** Drops all values. */
  clearAllValues(): void {
    this.#frame.clearValue(undefined)
  }

  /** All values by key. */
  getKvAllValues(): Record<string, string> {
    return this.#frame.values.all()
  }

  /** All keys, sorted. */
  getKvAllKeys(): string[] {
    return this.#frame.values.keys()
  }

  /** Number of keys. */
  getKvLength(): number {
    return this.#frame.values.size
  }

  /** Drops the values that were set before a time, in ms since 1970; gives their number. The same in every replay. */
  pruneKvValuesUpdatedBefore(cutoffMs: number): number {
    if (typeof cutoffMs !== 'number' || Number.isNaN(cutoffMs)) throw invalidArgument('cutoffMs must be a number')
    const old = this.#frame.values.olderThan(Math.max(0, Math.trunc(cutoffMs)))
    for (const key of old) this.#frame.clearValue(key)
    return old.length
  }

  /** Reads a value that another instance keeps; null when there is none. The engine itself answers. */
  getValueFromInstance(instanceId: string, key: string): Task<string | null> {
    return new CommandTask<string | null>(this.#frame, { type: 'read', instance: checkInstanceId(instanceId), key: checkKey(key) })
  }

  /** The time, in ms since 1970: that of the last thing that happened to this execution. May be yielded or awaited, too. */
  utcNow(): number {
    return this.#frame.handOut(this.#frame.now)
  }

  /** A UUID that is the same in every replay. May be yielded or awaited, too. */
  newGuid(): string {
    this.#frame.refuseInStep()
    return this.#frame.handOut(this.#frame.random.guid())
  }

  /** A number from 0 up to 1 that is the same in every replay. Not for secrets. May be yielded or awaited, too. */
  random(): number {
    this.#frame.refuseInStep()
    return this.#frame.handOut(this.#frame.random.fraction())
  }

  /** Logs a line, once: not again in replay. */
  traceInfo(message: string): void {
    this.#trace('info', message)
  }

  /** Logs a warning, once. */
  traceWarn(message: string): void {
    this.#trace('warn', message)
  }

  /** Logs an error, once. */
  traceError(message: string): void {
    this.#trace('error', message)
  }

  /** Logs a detail, once. */
  traceDebug(message: string): void {
    this.#trace('debug', message)
  }

  #trace(level: TraceLevel, message: string): void {
    if (this.#frame.isReplaying) return
    const { orchestrationName: name, orchestrationVersion, instanceId, executionId } = this
    trace({ level, message: String(message), source: 'orchestration', name, instanceId, executionId, orchestrationVersion })
  }

  #encode(value: unknown, what: string): string {
    return encode(value, what, this.#frame.payloadLimit)
  }
}

/** What `scheduleActivity` takes as options. */
const ACTIVITY_OPTIONS: readonly (keyof ActivityOptions)[] = ['sessionId', 'tag', 'retry', 'timeoutMs', 'heartbeatTimeoutMs']

/** What `step` takes as options. */
const STEP_OPTIONS: readonly (keyof StepOptions)[] = ['retry']

/** Refuses options that do not exist, so that a mistyped one is not silently without effect. */
function checkOptions<O extends object>(options: O | null | undefined, what: string, known: readonly (keyof O)[]): Partial<O> {
  if (options === undefined || options === null) return {}
  if (typeof options !== 'object') throw invalidArgument(`${what} must be an object, not ${kindOf(options)}`)
  const unknown = Object.keys(options).find((key) => !(known as readonly unknown[]).includes(key))
  if (unknown !== undefined) throw invalidArgument(`${what}: there is no option '${unknown}'; there are ${known.join(', ')}`)
  return options
}

/** The exact version asked for: given, or that of a definition. */
function exact(version: string | null | undefined, orchestration: unknown): string | undefined {
  if (version !== undefined && version !== null && version !== '') return checkVersion(version)
  if (typeof orchestration === 'object' && orchestration !== null) return (orchestration as OrchestrationDefinition).version
  return undefined
}
