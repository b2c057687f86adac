/**
 * The runtime: pulls work from the engine, runs the user's functions, and answers.
 *
 * One pull gives a batch; answers that are ready in the same turn of the event loop go back together. The open pull keeps the
 * process alive, so it lives exactly while the runtime is started. Handlers and frames belong to this runtime alone.
 */
import { type Abort, ActivityRunner } from './activity/runner.js'
import type { ActivityJob } from './activity/context.js'
import { Answers, reportDefect } from './answers.js'
import { Client } from './client.js'
import {
  type ActivityDefinition,
  type ActivityFunction,
  type OrchestrationDefinition,
  type OrchestrationFunction,
  checkFunction,
  nameOf,
} from './define.js'
import { HoldfastError } from './errors.js'
import { type RuntimeHealth, healthOf } from './health.js'
import { checkVersion, checkWhole } from './ids.js'
import type { MetricsSnapshot } from './metrics.js'
import { type NativeRuntime, binding } from './native.js'
import type { NativeRuntimeOptions } from './option-check.js'
import type { Duration, JsRuntimeOptions, OptionsInForce, RuntimeOptions } from './options.js'
import { resolveRuntimeOptions } from './options-in-force.js'
import { DEFAULT_PAYLOAD_BYTES } from './payload.js'
import { type PostgresProvider, nativeOf } from './provider.js'
import { type OrchestrationBody, DEFAULT_VERSION, Registry } from './registry.js'
import { OrchestrationContext } from './replay/context.js'
import { Driver } from './replay/driver.js'
import { abandoned } from './replay/encode.js'
import type { FrameBody } from './replay/frame.js'
import { holdGuard } from './replay/guard.js'
import type { Activation, ActivationStart } from './replay/wire.js'
import { listenTo } from './signals.js'
import { unwrap } from './unwrap.js'

/** Items of one pull: measured best between 32 and 128, where the crossing is cheap and no batch takes long. */
const BATCH = 64

/** How long `shutdown` waits for running work unless told otherwise. */
const SHUTDOWN_MS = 1000

interface Batch {
  turns?: Activation[]
  activities?: ActivityJob[]
  aborts?: Abort[]
  evict?: number[]
}

/**
 * Runs orchestrations and activities.
 *
 * @example
 * const runtime = new Runtime(provider, { orchestrationConcurrency: 64 })
 * runtime.registerActivity('charge', async (ctx, order) => charge(order))
 * runtime.registerOrchestration('checkout', async (ctx, order) => await ctx.scheduleActivity('charge', order))
 * await runtime.start()
 */
export class Runtime {
  readonly #provider: PostgresProvider
  readonly #native: NativeRuntime
  readonly #options: OptionsInForce<JsRuntimeOptions>
  readonly #values: NativeRuntimeOptions
  readonly #registry = new Registry()
  readonly #driver: Driver
  readonly #runner: ActivityRunner
  #client: Client | undefined
  readonly #answers: Answers
  #state: RuntimeHealth['state'] = 'new'
  #pulling: Promise<void> | undefined
  #dropGuard: () => void = () => {}
  #starting: Promise<void> | undefined
  #stopping: Promise<void> | undefined
  #life: NodeJS.Timeout | undefined
  #dropSignals: (() => void)[] = []

  /** `dispatcherPollInterval` is another name of `dispatcherPollIntervalMs`. */
  constructor(provider: PostgresProvider, options?: RuntimeOptions & { dispatcherPollInterval?: Duration }) {
    const { given, values, shown } = resolveRuntimeOptions(options)
    const limit = values.payloadByteLimit ?? DEFAULT_PAYLOAD_BYTES
    this.#provider = provider
    this.#options = shown
    this.#values = values
    this.#native = new (binding().JsRuntime)(nativeOf(provider), given)
    this.#answers = new Answers(
      (text) => this.#native.complete(text, BATCH),
      (batch) => void this.#take(batch),
    )
    this.#driver = new Driver(
      (start) => this.#bodyOf(start),
      (reply) => this.#answers.add('turn', reply),
      limit,
    )
    this.#runner = new ActivityRunner(
      (name) => this.#registry.activity(name),
      () => this.#ownClient(),
      (answer) => this.#answers.add('activity', answer),
      limit,
      (h, details) => this.#answers.beat(h, details),
    )
  }

  /**
   * Every option with its value in force and where it comes from.
   *
   * @example
   * runtime.options().maxAttempts // { value: 10, source: 'default' }
   */
  options(): OptionsInForce<JsRuntimeOptions> {
    return this.#options
  }

  /** Registers an activity. Of two functions under one name the first one stays, with a warning of the process. */
  registerActivity(activity: ActivityDefinition<never>): void
  registerActivity<I, O>(activity: ActivityDefinition<I, O>, fn?: ActivityFunction<I, O>): void
  registerActivity<I = unknown, O = unknown>(name: string, fn: ActivityFunction<I, O>): void
  registerActivity(activity: string | ActivityDefinition<never>, fn?: ActivityFunction<never>): void {
    const name = nameOf(activity, 'activity', 'activity name')
    const body = fn ?? (typeof activity === 'object' ? activity.fn : undefined)
    checkFunction(body, `activity '${name}'`)
    this.#registry.addActivity(name, body as ActivityFunction<never, unknown>)
  }

  /** Registers an orchestration; without a version it is 1.0.0. */
  registerOrchestration(orchestration: OrchestrationDefinition<never>): void
  registerOrchestration<I, O>(orchestration: OrchestrationDefinition<I, O>, fn?: OrchestrationFunction<I, O>): void
  registerOrchestration<I = unknown, O = unknown>(name: string, fn: OrchestrationFunction<I, O>): void
  registerOrchestration(orchestration: string | OrchestrationDefinition<never>, fn?: OrchestrationFunction<never>): void {
    const version = typeof orchestration === 'object' ? orchestration?.version : undefined
    this.#register(orchestration, version ?? DEFAULT_VERSION, fn)
  }

  /** Registers one version of an orchestration. */
  registerOrchestrationVersioned<I, O>(
    orchestration: OrchestrationDefinition<I, O>,
    version: string,
    fn?: OrchestrationFunction<I, O>,
  ): void
  registerOrchestrationVersioned<I = unknown, O = unknown>(name: string, version: string, fn: OrchestrationFunction<I, O>): void
  registerOrchestrationVersioned<I, O>(
    orchestration: string | OrchestrationDefinition<I, O>,
    version: string,
    fn?: OrchestrationFunction<I, O>,
  ): void {
    this.#register(orchestration, checkVersion(version), fn)
  }

  /** The same as `registerActivity`. */
  registerActivityTyped<I, O>(activity: ActivityDefinition<I, O>, fn?: ActivityFunction<I, O>): void
  registerActivityTyped<I = unknown, O = unknown>(name: string, fn: ActivityFunction<I, O>): void
  registerActivityTyped<I, O>(activity: string | ActivityDefinition<I, O>, fn?: ActivityFunction<I, O>): void {
    this.registerActivity(activity as ActivityDefinition<I, O>, fn)
  }

  /** The same as `registerOrchestration`. */
  registerOrchestrationTyped<I, O>(orchestration: OrchestrationDefinition<I, O>, fn?: OrchestrationFunction<I, O>): void
  registerOrchestrationTyped<I = unknown, O = unknown>(name: string, fn: OrchestrationFunction<I, O>): void
  registerOrchestrationTyped<I, O>(orchestration: string | OrchestrationDefinition<I, O>, fn?: OrchestrationFunction<I, O>): void {
    this.registerOrchestration(orchestration as OrchestrationDefinition<I, O>, fn)
  }

  /** The same as `registerOrchestrationVersioned`. */
  registerOrchestrationVersionedTyped<I, O>(
    orchestration: OrchestrationDefinition<I, O>,
    version: string,
    fn?: OrchestrationFunction<I, O>,
  ): void
  registerOrchestrationVersionedTyped<I = unknown, O = unknown>(name: string, version: string, fn: OrchestrationFunction<I, O>): void
  registerOrchestrationVersionedTyped<I, O>(
    orchestration: string | OrchestrationDefinition<I, O>,
    version: string,
    fn?: OrchestrationFunction<I, O>,
  ): void {
    this.registerOrchestrationVersioned(orchestration as OrchestrationDefinition<I, O>, version, fn)
  }

  #register<I, O>(
    orchestration: string | OrchestrationDefinition<I, O>,
    version: string,
    fn: OrchestrationFunction<I, O> | undefined,
  ): void {
    const name = nameOf(orchestration, 'orchestration', 'orchestration name')
    const body = fn ?? (typeof orchestration === 'object' ? orchestration.fn : undefined)
    checkFunction(body, `orchestration '${name}'`)
    this.#registry.addOrchestration(name, version, body as unknown as OrchestrationBody)
  }

  /** Starts to take work. A runtime starts once. */
  async start(): Promise<void> {
    if (this.#state !== 'new' || this.#stopping !== undefined) {
      const isRunning = this.#stopping === undefined && (this.#state === 'started' || this.#state === 'starting')
      const message = isRunning ? 'the runtime was started already' : 'the runtime was shut down; make a new one'
      throw new HoldfastError(message, { code: 'RUNTIME_STARTED' })
    }
    this.#state = 'starting'
    this.#startLogging()
    this.#starting = this.#start()
    await this.#starting
  }

  async #start(): Promise<void> {
    try {
      unwrap(await this.#native.start(this.#registry.close()))
    } catch (error) {
      this.#state = 'stopped'
      throw error
    }
    this.#state = 'started'
    this.#giveSignsOfLife()
    this.#dropGuard = holdGuard()
    this.#pulling = this.#pull().finally(() => this.#dropGuard())
  }

  /**
   * Stops: takes nothing new, hands back what was not begun, waits up to `timeoutMs` (default: 1000) for what runs, then
   * tells it to stop. Calling it again gives the same promise; a bad `timeoutMs` rejects and stops nothing.
   */
  shutdown(timeoutMs: number = SHUTDOWN_MS): Promise<void> {
    if (this.#stopping !== undefined) return this.#stopping
    try {
      checkWhole(timeoutMs, 'timeoutMs', 0)
    } catch (error) {
      return Promise.reject(error)
    }
    this.#stopping = this.#shutdown(timeoutMs)
    return this.#stopping
  }

  /**
   * What this runtime did since its start; null before the start and after a shutdown.
   *
   * @example
   * console.log(runtime.metricsSnapshot()?.orchCompletions)
   */
  metricsSnapshot(): MetricsSnapshot | null {
    if (this.#state !== 'started') return null
    const text = this.#native.metrics()
    return text === null || text === undefined ? null : (JSON.parse(text) as MetricsSnapshot)
  }

  /**
   * Shuts down at one of these signals, as {@link shutdown} does; another one while it does ends the waiting for what runs. The
   * listeners go with the shutdown, or when the returned function is called. The process then ends as soon as nothing else
   * keeps it.
   *
   * @example
   * runtime.shutdownOn(['SIGTERM', 'SIGINT'], { timeoutMs: 25_000 })
   */
  shutdownOn(signals: readonly NodeJS.Signals[], options: { timeoutMs?: number } = {}): () => void {
    const timeoutMs = options.timeoutMs ?? SHUTDOWN_MS
    checkWhole(timeoutMs, 'timeoutMs', 0)
    const drop = listenTo(signals, { stop: () => this.shutdown(timeoutMs), hurry: () => this.#native.hurry() })
    this.#dropSignals.push(drop)
    return drop
  }

  /** How this runtime does at this moment, for probes. Never waits and never throws. */
  health(): RuntimeHealth {
    return healthOf(this.#state, this.#native.health() ?? null)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.shutdown()
  }

  #startLogging(): void {
    const { logLevel, logFormat, serviceName, serviceVersion } = this.#values
    binding().JsLog.startLogging(logLevel ?? 'info', logFormat ?? 'compact', serviceName, serviceVersion)
  }

  async #shutdown(timeoutMs: number): Promise<void> {
    try {
      // A start that fails has told its own caller.
      await this.#starting?.catch(() => {})
      if (this.#state !== 'started') return
      this.#state = 'stopping'
      const outcome = await this.#native.shutdown(timeoutMs)
      await this.#pulling
      this.#runner.abortAll('shutdown')
      this.#driver.stop()
      unwrap(outcome)
    } finally {
      this.#state = 'stopped'
      clearInterval(this.#life)
      for (const drop of this.#dropSignals) drop()
    }
  }

  /** Tells the engine that the event loop turns; it keeps no process alive. */
  #giveSignsOfLife(): void {
    const every = this.#native.lifeIntervalMs()
    if (every <= 0) return
    this.#native.signOfLife()
    this.#life = setInterval(() => this.#native.signOfLife(), every).unref()
  }

  /** Pulls until the engine says that it is closed. */
  async #pull(): Promise<void> {
    for (;;) {
      const text = await this.#native.next(BATCH)
      if (text === null || text === undefined) return
      const rounds = this.#take(text)
      // The next pull waits a little, so that it finds a batch; not for a long replay.
      if (rounds !== undefined) await Promise.race([rounds, afterTwoTurns()])
    }
  }

  /** Begins what a batch brings. The promise, given when async functions have a turn in it, resolves when these are answered. */
  #take(text: string): Promise<void> | undefined {
    try {
      const batch = JSON.parse(text) as Batch
      if (batch.evict !== undefined) this.#driver.evict(batch.evict)
      for (const job of batch.activities ?? []) this.#startJob(job)
      // After the starts: a signal may be for a job of the same batch.
      for (const abort of batch.aborts ?? []) this.#runner.abort(abort)
      const rounds = this.#driver.run(batch.turns ?? [])
      this.#answers.flush()
      return rounds?.then(() => this.#answers.flush()).catch(reportDefect)
    } catch (error) {
      reportDefect(error)
      this.#answers.giveUp()
      return undefined
    }
  }

  #startJob(job: ActivityJob): void {
    try {
      this.#runner.start(job)
    } catch (error) {
      reportDefect(error)
      this.#answers.add('activity', abandoned(job.h))
    }
  }

  #bodyOf(start: ActivationStart): FrameBody | undefined {
    const body = this.#registry.orchestration(start.name, start.version)
    if (body === undefined) return undefined
    return (frame) => body(new OrchestrationContext(frame) as never, start.input as never)
  }

  #ownClient(): Client {
    this.#client ??= new Client(this.#provider)
    return this.#client
  }
}

function afterTwoTurns(): Promise<void> {
  return new Promise((resolve) => setImmediate(() => setImmediate(resolve)))
}
