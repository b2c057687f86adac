/**
 * What the calls about standalone activities take and give, and the checks of what they take.
 */
import type { ActivityDefinition } from '../define.js'
import { nameOf } from '../define.js'
import { type ErrorPayload, activityError } from '../error-payload.js'
import { MAX_TAG_NAME_BYTES, checkName, checkWhole, invalidArgument, kindOf } from '../ids.js'
import { encode } from '../payload.js'
import { type RetryPolicy, encodeRetry, withHeartbeat } from '../retry.js'
import { validated } from '../schema.js'
import { timeOrderedId } from './id.js'

/** How a standalone activity is queued. */
export interface EnqueueOptions {
  /** Id, unique among standalone activities; queuing it again finds the task that is there. Default: a fresh one, rising with time. */
  id?: string | undefined
  /** From now until it may start, in ms. Default: 0. */
  delayMs?: number | undefined
  /** Only workers whose tag filter has this tag run it. Default: none. */
  tag?: string | undefined
  /** When and how often it is tried again. Default: one try. */
  retry?: RetryPolicy | undefined
  /** Time limit of one try, in ms, from the start of its body. Default: the runtime's `activityTimeoutMs`. */
  timeoutMs?: number | undefined
  /** Longest time between two calls of `ctx.heartbeat` within one try, in ms; a second or more. Default: none. */
  heartbeatTimeoutMs?: number | undefined
  /**
   * How long it can be read after a success, in ms, or `'keep'` until it is deleted. Default: 60000 for `enqueueActivity`, 0
   * for `enqueueActivities`. Failed ones stay in any case, and one that somebody waits for stays for a minute.
   */
  retention?: number | 'keep' | undefined
}

/** One task of `enqueueActivities`. A definition says what its input must be. */
export interface EnqueueItem extends EnqueueOptions {
  /** Name or definition. */
  activity: string | ActivityDefinition<never>
  /** What the activity is given. */
  input?: unknown
}

/** What a definition asks of the item that names it. */
export type EnqueueItemInput<T> = T extends { activity: ActivityDefinition<infer I> }
  ? undefined extends I
    ? { input?: I }
    : { input: I }
  : unknown

/** What the activity of an item gives. */
export type EnqueueItemOutput<T> = T extends { activity: ActivityDefinition<never, infer O> } ? O : unknown

/**
 * How a standalone activity stands: `Pending` waits for its time, its next try or a free worker; `Failed` has used up its retry
 * policy, `Poisoned` its deliveries. `NotFound`: it never was, or is not kept any more.
 */
export type ActivityStatus = 'Pending' | 'Running' | 'Completed' | 'Failed' | 'Poisoned' | 'Cancelled' | 'NotFound'

/** What is known about a standalone activity. Times are ms since 1970. */
export interface ActivityInfo<O = unknown> {
  id: string
  status: ActivityStatus
  /** Name of the activity. */
  name?: string
  /** Try of its retry policy, from 1. */
  attempt?: number
  /** Deliveries of this try. */
  delivery?: number
  tag?: string
  /** The node that runs it. */
  node?: string
  /** What its body told last with `ctx.heartbeat`. */
  heartbeatDetails?: unknown
  /** When that was stored. */
  heartbeatAt?: number
  /** When it was to start for the first time. */
  scheduledAt?: number
  /** When it may start; while it runs, when its lease ends. */
  dueAt?: number
  endedAt?: number
  /** Its result; lists leave it out. */
  result?: O
  /** Why it did not succeed. */
  error?: Error
}

/** What `listActivities` lists. Filters that are absent keep everything. */
export interface ActivityFilter {
  status?: Exclude<ActivityStatus, 'NotFound'> | undefined
  /** Name of the activity. */
  name?: string | undefined
  tag?: string | undefined
  /** How the id begins. */
  idPrefix?: string | undefined
  /** Activities of one page, 1 to 1000. Default: 100. */
  limit?: number | undefined
  /** `cursor` of the page before. Absent: the first page. */
  cursor?: string | undefined
}

/** What `listActivities` gives. */
export interface ActivityPage {
  /** By id, ascending. */
  activities: ActivityInfo[]
  /** Where the next page begins; absent on the last one. */
  cursor?: string
}

/** A standalone activity as the addon tells it. */
export interface ActivityRecord {
  id: string
  name: string
  status: Exclude<ActivityStatus, 'NotFound'>
  attempt: number
  delivery: number
  tag: string | null
  node: string | null
  heartbeat: unknown
  heartbeatAt: number | null
  scheduledAt: number
  dueAt: number | null
  endedAt: number | null
  result: unknown
}

/** A task ready to be sent. */
export interface EncodedTask {
  id: string
  /** Whether the caller chose the id. */
  isNamed: boolean
  name: string
  text: string
}

/** How long a single task can be read after a success unless told otherwise: what `handle.result()` of any process needs. */
export const SINGLE_RETENTION_MS = 60_000

const OPTIONS = ['id', 'delayMs', 'tag', 'retry', 'timeoutMs', 'heartbeatTimeoutMs', 'retention']
const ITEM_KEYS = ['activity', 'input', ...OPTIONS]
const FILTER_KEYS = ['status', 'name', 'tag', 'idPrefix', 'limit', 'cursor']
const STATUSES: readonly string[] = ['Pending', 'Running', 'Completed', 'Failed', 'Poisoned', 'Cancelled']
const PAGE = 100
const MAX_PAGE = 1000

/** Checks and writes one task; nothing is sent yet. */
export async function encodeTask(activity: unknown, input: unknown, options: EnqueueOptions, retentionMs: number): Promise<EncodedTask> {
  const name = nameOf(activity, 'activity', 'activity name')
  if (typeof activity === 'object') await validated((activity as ActivityDefinition).input, input, `input of activity '${name}'`)
  checkKeys(options, ITEM_KEYS, `options of activity '${name}'`)
  const { delayMs, tag, timeoutMs, retention } = options
  const retry = withHeartbeat(options.retry, options.heartbeatTimeoutMs)
  const isNamed = options.id !== undefined
  const id = options.id === undefined ? timeOrderedId() : checkName(options.id, 'activity id')
  const keep = retention === undefined ? retentionMs : retention === 'keep' ? -1 : checkWhole(retention, "retention (or 'keep')", 0)
  const fields = [`"id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"retentionMs":${keep}`]
  if (delayMs !== undefined) fields.push(`"delayMs":${checkWhole(delayMs, 'delayMs', 0)}`)
  if (tag !== undefined) fields.push(`"tag":${JSON.stringify(checkName(tag, 'tag', MAX_TAG_NAME_BYTES))}`)
  if (timeoutMs !== undefined) fields.push(`"timeoutMs":${checkWhole(timeoutMs, 'timeoutMs', 1)}`)
  if (retry !== undefined) fields.push(`"retry":${encodeRetry(retry, `retry policy of activity '${name}'`)}`)
  fields.push(`"input":${encode(input, `input of activity '${name}'`)}`)
  return { id, isNamed, name, text: `{${fields.join(',')}}` }
}

/** The fields of a list request. */
export function activityFilterOf(filter: ActivityFilter): Record<string, unknown> {
  checkKeys(filter, FILTER_KEYS, 'filter')
  const { status, name, tag, idPrefix, cursor } = filter
  const limit = checkWhole(filter.limit ?? PAGE, 'limit', 1)
  if (limit > MAX_PAGE) throw invalidArgument(`limit must be at most ${MAX_PAGE}, not ${limit}`)
  if (status !== undefined && !STATUSES.includes(status)) throw invalidArgument(`status must be one of ${STATUSES.join(', ')}`)
  const word = (value: string | undefined, what: string): string | undefined => (value === undefined ? undefined : checkName(value, what))
  return {
    status,
    name: word(name, 'name'),
    tag: word(tag, 'tag'),
    idPrefix: word(idPrefix, 'idPrefix'),
    after: word(cursor, 'cursor'),
    limit,
  }
}

/** A record as users see it. */
export function activityInfoOf<O>(record: ActivityRecord): ActivityInfo<O> {
  const { id, name, status, attempt, delivery, tag, node, scheduledAt, dueAt, endedAt, result } = record
  const info: ActivityInfo<O> = { id, status, name, attempt, delivery, scheduledAt }
  if (tag !== null) info.tag = tag
  if (node !== null) info.node = node
  if (record.heartbeat !== null) info.heartbeatDetails = record.heartbeat
  if (record.heartbeatAt !== null) info.heartbeatAt = record.heartbeatAt
  if (dueAt !== null) info.dueAt = dueAt
  if (endedAt !== null) info.endedAt = endedAt
  if (status === 'Completed' && result !== null) info.result = result as O
  else if (endedAt !== null && result !== null) info.error = activityError(name, result as ErrorPayload)
  return info
}

function checkKeys(value: unknown, known: readonly string[], what: string): void {
  if (typeof value !== 'object' || value === null) throw invalidArgument(`${what} must be an object, not ${kindOf(value)}`)
  const unknown = Object.keys(value).find((key) => !known.includes(key))
  if (unknown !== undefined) throw invalidArgument(`${what}: '${unknown}' is unknown; known are ${known.join(', ')}`)
}
