/**
 * The handle of a standalone activity: an id with the client that talks about it.
 */
import { type AbortOptions, type WaitOptions, signalOf } from '../abort.js'
import { activityError, type ErrorPayload } from '../error-payload.js'
import { CancelledError, HoldfastError, TimeoutError } from '../errors.js'
import { checkWhole } from '../ids.js'
import type { ActivityQueue } from './queue.js'
import type { ActivityInfo, ActivityRecord } from './shapes.js'

/** Longest single wait of `result`; it asks again until the activity ends. */
const SLICE_MS = 60_000

/**
 * A standalone activity that was queued.
 *
 * @example
 * const handle = await client.enqueueActivity('mail', letter, { id: 'mail-17', retry: { maxAttempts: 5 } })
 * const receipt = await handle.result({ timeoutMs: 30_000 })
 */
export class ActivityHandle<O = unknown> {
  /** Id of the activity. */
  readonly id: string
  /** False when the id was taken before by a task with the same name and input; that one goes on undisturbed. */
  readonly created: boolean
  readonly #queue: ActivityQueue

  /** @internal */
  constructor(queue: ActivityQueue, id: string, created: boolean) {
    this.#queue = queue
    this.id = id
    this.created = created
  }

  /**
   * Waits for the end and gives the result. Rejects with {@link ActivityFailedError} (code `POISONED` when its deliveries were
   * used up), with {@link CancelledError}, with {@link TimeoutError} when its own time limit passed or `timeoutMs` is given and
   * over, with the reason of a `signal` that is aborted, and with code `NOT_FOUND` when nothing is stored about it: it ended
   * and its `retention` is over.
   */
  async result(options: WaitOptions = {}): Promise<O> {
    const signal = signalOf(options)
    const end = options.timeoutMs === undefined ? Infinity : performance.now() + checkWhole(options.timeoutMs, 'timeoutMs', 0)
    for (;;) {
      const left = Math.max(0, end - performance.now())
      const record = await this.#queue.waitForActivity(this.id, Math.min(left, SLICE_MS), signal)
      if (record === 'unknown') {
        const message = `activity '${this.id}' is not stored: it never was queued, or it has ended and is kept no longer`
        throw new HoldfastError(message, { code: 'NOT_FOUND' })
      }
      if (record !== null) return outcomeOf<O>(record)
      if (performance.now() < end) continue
      const message = `Operation timed out: activity '${this.id}' did not end within ${options.timeoutMs} ms`
      throw new TimeoutError(message, { code: 'TIMEOUT', retryable: true })
    }
  }

  /** How it stands; `NotFound` when nothing is stored about it. */
  async status(options?: AbortOptions): Promise<ActivityInfo<O>> {
    return await this.#queue.getActivity<O>(this.id, options)
  }

  /**
   * Stops it: it never starts, or its signal is aborted (at once in this process, within a heartbeat interval elsewhere).
   * `cancelled` is false when it has ended.
   */
  async cancel(reason = '', options?: AbortOptions): Promise<{ cancelled: boolean }> {
    return await this.#queue.cancelActivity(this.id, reason, options)
  }
}

function outcomeOf<O>(record: ActivityRecord): O {
  if (record.status === 'Completed') return record.result as O
  const error = record.result as ErrorPayload
  if (record.status === 'Cancelled') throw new CancelledError(error.message, { code: 'CANCELLED' })
  throw activityError(record.name, error)
}
