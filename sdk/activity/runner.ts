/**
 * Runs activities and says how each ended. Knows nothing of leases and retries: the engine decides what an end means.
 */
import type { Client } from '../client.js'
import { encodeError } from '../error-payload.js'
import { encode } from '../payload.js'
import { unregistered } from '../replay/encode.js'
import { ActivityContext, type ActivityJob } from './context.js'
import { type AbortReason, Stop } from './stop.js'

/** An order to stop the activity `h`. */
export interface Abort {
  h: number
  reason: AbortReason
}

/** The code of an activity, any types. */
export type ActivityBody = (ctx: ActivityContext, input: never) => unknown

/** Activities that are running in this runtime. */
export class ActivityRunner {
  readonly #running = new Map<number, Stop>()

  constructor(
    private readonly find: (name: string) => ActivityBody | undefined,
    private readonly client: () => Client,
    private readonly emit: (answer: string) => void,
    private readonly payloadLimit: number,
    private readonly beat: (h: number, details: string) => void = () => {},
  ) {}

  /** Number of running activities. */
  get size(): number {
    return this.#running.size
  }

  /** Starts an activity. Its answer is emitted when it ends, never before this call returns. */
  start(job: ActivityJob): void {
    const body = this.find(job.name)
    if (body === undefined) {
      this.emit(unregistered(job.h))
      return
    }
    const stop = new Stop()
    this.#running.set(job.h, stop)
    void this.#run(job, body, stop)
  }

  /** Tells a running activity to stop; one that has ended is left alone. */
  abort({ h, reason }: Abort): void {
    this.#running.get(h)?.order(reason)
  }

  /** Tells all running activities to stop. */
  abortAll(reason: AbortReason): void {
    for (const h of [...this.#running.keys()]) this.abort({ h, reason })
  }

  async #run(job: ActivityJob, body: ActivityBody, stop: Stop): Promise<void> {
    let ctx: ActivityContext | undefined
    let answer: string
    try {
      ctx = new ActivityContext(job, stop, this.client, this.beat)
      const result = await body(ctx, job.input as never)
      answer = `"ok":${encode(result, `result of activity '${job.name}'`, this.payloadLimit)}`
    } catch (error) {
      // Stopped because this node gives it up, not because it failed: it is handed back and runs elsewhere.
      const isHandedBack = stop.reason === 'shutdown' || stop.reason === 'lost'
      answer = isHandedBack ? '"abandon":true' : `"err":${encodeError(error)}`
    }
    ctx?.end()
    this.#running.delete(job.h)
    this.emit(`{"h":${job.h},${answer}}`)
  }
}
