/**
 * The context of an activity: who asked, which try this is, how long it may take, and the signal to stop.
 */
import type { Client } from '../client.js'
import { type TraceLevel, trace } from '../trace.js'

/** An activity to run, as the engine hands it over. */
export interface ActivityJob {
  /** Handle of the running activity within this runtime. */
  h: number
  name: string
  input: unknown
  instance: string
  execution: number
  event: number
  orchestration: string | null
  version: string | null
  attempt: number
  delivery: number
  maxAttempts: number
  tag: string | null
  session: string | null
  workerId: string
  timeoutMs: number | null
  deadlineMs: number | null
}

/**
 * What an activity is given.
 *
 * @example
 * runtime.registerActivity('charge', async (ctx, order) =>
 *   pay(order, { idempotencyKey: ctx.idempotencyKey, signal: ctx.signal }))
 */
export class ActivityContext {
  /** Id of the instance that asked for it; of a standalone activity, its own id. */
  readonly instanceId: string
  /** Number of that instance's execution; 0 for a standalone activity. */
  readonly executionId: number
  /** Name of the orchestration that asked; null for a standalone activity. */
  readonly orchestrationName: string | null
  /** Its version. */
  readonly orchestrationVersion: string | null
  /** Name of this activity. */
  readonly activityName: string
  /** The node that runs it. */
  readonly workerId: string
  /** Session that it belongs to, or null. */
  readonly sessionId: string | null
  /** Which try of its retry policy this is, from 1. */
  readonly attempt: number
  /** Which delivery this is, from 1; more than the attempts after a crash. */
  readonly delivery: number
  /** When its time limit passes; null without one. */
  readonly deadline: Date | null
  /** The same for every try and delivery of this step: pass it on to what you call, so that a repeated effect is recognised. */
  readonly idempotencyKey: string
  /** Aborted when the activity is to stop: cancelled, out of time, lost to another node, or the runtime shuts down. */
  readonly signal: AbortSignal
  readonly #tag: string | null
  readonly #event: number
  readonly #client: () => Client
  #isOver = false

  /** @internal */
  constructor(job: ActivityJob, signal: AbortSignal, client: () => Client) {
    this.instanceId = job.instance
    this.executionId = job.execution
    this.orchestrationName = job.orchestration
    this.orchestrationVersion = job.version
    this.activityName = job.name
    this.workerId = job.workerId
    this.sessionId = job.session
    this.attempt = job.attempt
    this.delivery = job.delivery
    this.deadline = job.deadlineMs === null ? null : new Date(job.deadlineMs)
    this.idempotencyKey = `${job.instance}/${job.execution}/${job.event}`
    this.signal = signal
    this.#tag = job.tag
    this.#event = job.event
    this.#client = client
  }

  /** True once the activity is to stop. */
  isCancelled(): boolean {
    return this.signal.aborted
  }

  /** Routing label, or null. */
  tag(): string | null {
    return this.#tag
  }

  /** A client on the runtime's provider; null once the activity has ended. */
  getClient(): Client | null {
    return this.#isOver ? null : this.#client()
  }

  /** Logs a line. */
  traceInfo(message: string): void {
    this.#trace('info', message)
  }

  /** Logs a warning. */
  traceWarn(message: string): void {
    this.#trace('warn', message)
  }

  /** Logs an error. */
  traceError(message: string): void {
    this.#trace('error', message)
  }

  /** Logs a detail. */
  traceDebug(message: string): void {
    this.#trace('debug', message)
  }

  #trace(level: TraceLevel, message: string): void {
    const { activityName: name, instanceId, executionId, orchestrationName, orchestrationVersion, workerId } = this
    const where = { instanceId, executionId, orchestrationName, orchestrationVersion, workerId, activityId: this.#event, tag: this.#tag }
    trace({ level, message: String(message), source: 'activity', name, ...where })
  }

  /** @internal */
  end(): void {
    this.#isOver = true
  }
}
