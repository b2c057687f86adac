/**
 * The context of an activity: who asked, which try this is, how long it may take, and the signal to stop.
 */
import type { Client } from '../client.js'
import { encode } from '../payload.js'
import { type TraceLevel, trace } from '../trace.js'
import type { Stop } from './stop.js'

/** Details of one heartbeat: progress, not data; all of them are written once a second. */
const MAX_HEARTBEAT_BYTES = 64 * 1024

/** The last time that a Date can hold. */
const LAST_DATE = 8.64e15

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
  heartbeatTimeoutMs?: number | null
  /** What an earlier delivery told last. */
  heartbeat?: unknown
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
  /** When its time limit passes, by this machine's clock; null without one. */
  readonly deadline: Date | null
  /** The same for every try and delivery of this step: pass it on to what you call, so that a repeated effect is recognised. */
  readonly idempotencyKey: string
  /** What `heartbeat` was given last by an earlier try or delivery, so that this one can go on from there; else null. */
  readonly lastHeartbeatDetails: unknown
  readonly #stop: Stop
  readonly #tag: string | null
  readonly #event: number
  readonly #client: () => Client
  readonly #h: number
  readonly #beat: (h: number, details: string) => void
  #isOver = false

  /** @internal */
  constructor(job: ActivityJob, stop: Stop, client: () => Client, beat: (h: number, details: string) => void = () => {}) {
    this.instanceId = job.instance
    this.executionId = job.execution
    this.orchestrationName = job.orchestration
    this.orchestrationVersion = job.version
    this.activityName = job.name
    this.workerId = job.workerId
    this.sessionId = job.session
    this.attempt = job.attempt
    this.delivery = job.delivery
    this.deadline = job.timeoutMs === null ? null : new Date(Math.min(Date.now() + job.timeoutMs, LAST_DATE))
    this.lastHeartbeatDetails = job.heartbeat ?? null
    this.idempotencyKey = `${job.instance}/${job.execution}/${job.event}`
    this.#stop = stop
    this.#tag = job.tag
    this.#event = job.event
    this.#client = client
    this.#h = job.h
    this.#beat = beat
  }

  /** Aborted when the activity is to stop: cancelled, out of time, lost to another node, or the runtime shuts down. */
  get signal(): AbortSignal {
    return this.#stop.signal
  }

  /** True once the activity is to stop. */
  isCancelled(): boolean {
    return this.#stop.reason !== undefined
  }

  /**
   * Says that the activity is alive, and how far it is: the next try or delivery finds it in `lastHeartbeatDetails`, lists show
   * it. Call it as often as you like: calls are gathered and stored once a second. Details are JSON of at most 64 KiB. With
   * `heartbeatTimeoutMs`, silence for that long ends the try.
   *
   * @example
   * for (let page = (ctx.lastHeartbeatDetails ?? 0) + 1; page <= pages; page++) {
   *   await load(page, { signal: ctx.signal })
   *   ctx.heartbeat(page)
   * }
   */
  heartbeat(details?: unknown): void {
    const text = encode(details, 'heartbeat details', MAX_HEARTBEAT_BYTES)
    if (!this.#isOver) this.#beat(this.#h, text)
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
