/**
 * The half of the client that queues activities with no orchestration around them, and looks after them.
 *
 * Arguments are checked and encoded before anything is sent. Nothing here needs a runtime.
 */
import { type AbortOptions, abortable, signalOf, splitSignal } from '../abort.js'
import type { ActivityDefinition, InputArguments } from '../define.js'
import { HoldfastError, InstanceExistsError, ofItem } from '../errors.js'
import { checkName, checkWhole, invalidArgument } from '../ids.js'
import { Management } from '../management.js'
import type { NativeClient } from '../native.js'
import { unwrap } from '../unwrap.js'
import { ActivityHandle } from './handle.js'
import {
  type ActivityFilter,
  type ActivityInfo,
  type ActivityPage,
  type ActivityRecord,
  type EncodedTask,
  type EnqueueItem,
  type EnqueueItemInput,
  type EnqueueItemOutput,
  type EnqueueOptions,
  SINGLE_RETENTION_MS,
  activityFilterOf,
  activityInfoOf,
  encodeTask,
} from './shapes.js'

/** Bounds of one text for the addon: strings end at 512 Mi units, and one input may have 64. */
const PIECE_TASKS = 5000
const PIECE_LENGTH = 16 * 1024 * 1024

interface Made {
  created: boolean
  same: boolean
}

/** Queues standalone activities; every {@link Client} can do this. */
export abstract class ActivityQueue extends Management {
  readonly #native: NativeClient

  /** @internal */
  protected constructor(native: NativeClient) {
    super(native)
    this.#native = native
  }

  /**
   * Queues an activity with no orchestration around it: a background job. It runs on any runtime that has the activity, at
   * least once; its result is recorded once. When this resolves, it is stored.
   *
   * An id that is taken gives the handle of the task that is there; with another name or input it rejects with
   * {@link InstanceExistsError}.
   *
   * @example
   * await client.enqueueActivity('mail', { to: 'ann@example.org' }, { id: 'welcome-ann', delayMs: 60_000, retry: { maxAttempts: 5 } })
   */
  async enqueueActivity<O = unknown, I = unknown>(
    activity: string | ActivityDefinition<I, O>,
    ...rest: InputArguments<I, [options?: EnqueueOptions & AbortOptions]>
  ): Promise<ActivityHandle<O>> {
    const { signal, others } = splitSignal(rest[1])
    const task = await encodeTask(activity, rest[0], others, SINGLE_RETENTION_MS)
    const [made] = await this.#enqueue([task], { signal })
    return this.#handles<O>([task], made === undefined ? [] : [made])[0] as ActivityHandle<O>
  }

  /**
   * Queues many activities: thousands with one commit. Nothing is kept of those that succeed unless they say so with
   * `retention`. Stored in pieces of 1000, each whole or not at all; when it rejects half way, the same call with the same ids
   * does the rest.
   *
   * @example
   * await client.enqueueActivities(users.map((user) => ({ activity: 'mail', input: user, id: `news-7-${user.id}` })))
   */
  async enqueueActivities<const T extends readonly EnqueueItem[]>(
    items: T & { readonly [K in keyof T]: T[K] & EnqueueItemInput<T[K]> },
    options?: AbortOptions,
  ): Promise<{ -readonly [K in keyof T]: ActivityHandle<EnqueueItemOutput<T[K]>> }> {
    if (!Array.isArray(items)) throw invalidArgument('enqueueActivities takes a list')
    const tasks: EncodedTask[] = []
    for (const [i, item] of (items as readonly EnqueueItem[]).entries()) {
      tasks.push(await ofItem(i, async () => await encodeTask(item.activity, item.input, item, 0)))
    }
    const made: Made[] = []
    for (const piece of pieces(tasks)) made.push(...(await this.#enqueue(piece, options)))
    return this.#handles<never>(tasks, made) as unknown as { -readonly [K in keyof T]: ActivityHandle<EnqueueItemOutput<T[K]>> }
  }

  /** The handle of a standalone activity, without asking whether it exists. */
  activityHandle<O = unknown>(id: string): ActivityHandle<O> {
    return new ActivityHandle<O>(this, checkName(id, 'activity id'), false)
  }

  /** How a standalone activity stands; `NotFound` when nothing is stored about it. */
  async getActivity<O = unknown>(id: string, options?: AbortOptions): Promise<ActivityInfo<O>> {
    const record = await this.#ask<ActivityRecord | null>({ op: 'get', id: checkName(id, 'activity id') }, signalOf(options))
    return record === null ? { id, status: 'NotFound' } : activityInfoOf<O>(record)
  }

  /**
   * Lists standalone activities by id, a page at a time: waiting, running and ended ones, as far as they are stored.
   *
   * @example
   * const dead = await client.listActivities({ status: 'Failed', name: 'mail' })
   * for (const { id } of dead.activities) await client.retryActivity(id)
   */
  async listActivities(filter: ActivityFilter = {}, options?: AbortOptions): Promise<ActivityPage> {
    const { activities, next } = await this.#ask<{ activities: ActivityRecord[]; next: string | null }>(
      { op: 'list', ...activityFilterOf(filter) },
      signalOf(options),
    )
    const page: ActivityPage = { activities: activities.map((record) => activityInfoOf(record)) }
    if (next !== null) page.cursor = next
    return page
  }

  /** Stops a standalone activity that has not ended; `cancelled` is false when there is none. See {@link ActivityHandle.cancel}. */
  async cancelActivity(id: string, reason = '', options?: AbortOptions): Promise<{ cancelled: boolean }> {
    const text = String(reason)
    if (!text.isWellFormed() || text.includes('\0')) throw invalidArgument('reason must be well-formed Unicode without NUL')
    return await this.#ask({ op: 'cancel', id: checkName(id, 'activity id'), reason: text }, signalOf(options))
  }

  /**
   * Queues a failed, poisoned or cancelled standalone activity anew: due now, with all its tries. `retried` is false when there
   * is none of this id.
   */
  async retryActivity(id: string, options?: AbortOptions): Promise<{ retried: boolean }> {
    return await this.#ask({ op: 'retry', id: checkName(id, 'activity id') }, signalOf(options))
  }

  /**
   * Forgets a standalone activity that has ended; its id is free then. `deleted` is false when nothing is stored about it.
   * Rejects with code `STILL_RUNNING` when it has not ended.
   */
  async deleteActivity(id: string, options?: AbortOptions): Promise<{ deleted: boolean }> {
    return await this.#ask({ op: 'delete', id: checkName(id, 'activity id') }, signalOf(options))
  }

  /** @internal The ended task; null when the time is over first, `'unknown'` when nothing is stored about it. */
  async waitForActivity(id: string, timeoutMs: number, signal?: AbortSignal): Promise<ActivityRecord | 'unknown' | null> {
    const limit = checkWhole(Math.ceil(timeoutMs), 'timeoutMs', 0)
    const { ended, unknown } = await this.#ask<{ ended: ActivityRecord | null; unknown: boolean }>(
      { op: 'wait', id, timeoutMs: limit },
      signal,
    )
    return unknown ? 'unknown' : ended
  }

  async #enqueue(tasks: readonly EncodedTask[], options: AbortOptions | undefined): Promise<Made[]> {
    const isNamed = tasks.some((task) => task.isNamed)
    const text = `{"named":${isNamed},"tasks":[${tasks.map((task) => task.text).join(',')}]}`
    return JSON.parse(unwrap(await abortable(this.#native, signalOf(options), (ticket) => this.#native.enqueue(text, ticket)))) as Made[]
  }

  #handles<O>(tasks: readonly EncodedTask[], made: readonly Made[]): ActivityHandle<O>[] {
    return tasks.map((task, index) => {
      const told = made[index]
      if (told === undefined) throw new HoldfastError('the engine did not answer the enqueue', { code: 'INTERNAL' })
      if (!told.same) {
        const message = `activity '${task.id}' exists and was queued with another name or input`
        throw new InstanceExistsError(message, { code: 'INSTANCE_EXISTS' })
      }
      return new ActivityHandle<O>(this, task.id, told.created)
    })
  }

  async #ask<T>(request: Record<string, unknown>, signal?: AbortSignal): Promise<T> {
    const text = JSON.stringify(request)
    return JSON.parse(unwrap(await abortable(this.#native, signal, (ticket) => this.#native.standalone(text, ticket)))) as T
  }
}

/** Cuts a list so that each piece fits one text; a task larger than that stands alone. */
function* pieces(tasks: readonly EncodedTask[]): Generator<EncodedTask[]> {
  let piece: EncodedTask[] = []
  let length = 0
  for (const task of tasks) {
    if (piece.length > 0 && (piece.length >= PIECE_TASKS || length + task.text.length > PIECE_LENGTH)) {
      yield piece
      piece = []
      length = 0
    }
    piece.push(task)
    length += task.text.length
  }
  if (piece.length > 0) yield piece
}
