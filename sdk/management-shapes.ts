/**
 * What the management calls take and give, and the checks of what they take. A cursor is opaque to users: the place where the
 * next page begins.
 */
import { checkInstanceId, checkName, checkVersion, checkWhole, invalidArgument, kindOf } from './ids.js'
import type { InstanceSummary, SummaryRecord } from './status.js'

/** A time: ms since 1970, or a Date. */
export type Time = number | Date

/** A status to list by. `Failed` includes `Cancelled` and what is parked; `Pending` waits for its first turn. */
export type ListedStatus = 'Pending' | 'Running' | 'Completed' | 'Failed' | 'Cancelled'

/** What `listInstances` lists. Filters that are absent keep everything. */
export interface InstanceFilter {
  status?: ListedStatus | undefined
  /** True: only parked ones. False: none of them. */
  parked?: boolean | undefined
  /** Code of the error, such as `POISONED` or `NONDETERMINISM`. */
  code?: string | undefined
  /** The label that `start` gave it. */
  tag?: string | undefined
  /** Name of the orchestration. */
  name?: string | undefined
  /** Exact version. */
  version?: string | undefined
  /** Id of the parent: lists its children. */
  parent?: string | undefined
  /** How the id begins. */
  idPrefix?: string | undefined
  /** Made after this time. */
  createdAfter?: Time | undefined
  /** Made before this time. */
  createdBefore?: Time | undefined
  /** Instances of one page, 1 to 1000. Default: 100. */
  limit?: number | undefined
  /** `cursor` of the page before. Absent: the first page. */
  cursor?: string | undefined
}

/** Which parked instances `resumeBulk` resumes. */
export interface ResumeFilter extends Omit<InstanceFilter, 'status' | 'parked' | 'limit' | 'cursor'> {
  /** Instances at most, the newest first. Default: 1000. */
  limit?: number | undefined
}

/** What `resume` tells. */
export interface ResumeResult {
  /** False when the instance was not parked. */
  resumed: boolean
}

/** What `retryInstance` tells. */
export interface RetryResult {
  /** False when the instance was not poisoned. */
  retried: boolean
}

/** What `listInstances` gives. */
export interface InstancePage {
  /** Newest first. */
  instances: InstanceSummary[]
  /** Where the next page begins; absent on the last one. */
  cursor?: string
}

/** What `getInstanceTree` gives. */
export interface InstanceTree {
  /** The id that was asked for. */
  rootId: string
  /** That id, which comes first, and all its descendants. */
  allIds: string[]
  size: number
}

/** What was deleted. */
export interface DeleteResult {
  instancesDeleted: number
  executionsDeleted: number
  eventsDeleted: number
  /** Messages and activities that were waiting. */
  queueMessagesDeleted: number
}

/** Which instances a bulk call is about. */
export interface BulkFilter {
  /** Only these. */
  instanceIds?: readonly string[] | undefined
  /** Only those that ended before this time. */
  completedBefore?: Time | undefined
  /** Instances at most, not counting their descendants. Default: 1000. */
  limit?: number | undefined
}

/** Which executions pruning keeps; with both options it deletes what neither keeps. */
export interface PruneOptions {
  /** The newest ones, counting the current one. Default: 1; 0 is the same. */
  keepLast?: number | undefined
  /** Those that ended at this time or later. */
  completedBefore?: Time | undefined
}

/** What was pruned. */
export interface PruneResult {
  /** Instances looked at. */
  instancesProcessed: number
  executionsDeleted: number
  eventsDeleted: number
}

/** What `getSystemMetrics` gives. */
export interface SystemMetrics {
  totalInstances: number
  totalExecutions: number
  /** Not ended. */
  runningInstances: number
  completedInstances: number
  /** Cancelled ones included. */
  failedInstances: number
  /** Beyond a million, the database's estimate. */
  totalEvents: number
}

/** What `getQueueDepths` gives: work that is due and leased by nobody. */
export interface QueueDepths {
  orchestratorQueue: number
  workerQueue: number
  /** Always 0: a due timer is a due turn. */
  timerQueue: number
}

/** What `getOrchestrationStats` gives, for the current execution. */
export interface OrchestrationStats {
  historyEventCount: number
  historySizeBytes: number
  /** Queue messages that continue-as-new carried into the execution. */
  queuePendingCount: number
  kvUserKeyCount: number
  kvTotalValueBytes: number
}

/** A page as the addon tells it. */
export interface PageRecord {
  instances: SummaryRecord[]
  next: Place | null
}

interface Place {
  createdAt: number
  instance: string
}

/** Instances of one page unless told otherwise, and at most. */
const PAGE = 100
const MAX_PAGE = 1000

/** Roots of one bulk call unless told otherwise. */
const BULK = 1000

const STATUSES: readonly string[] = ['Pending', 'Running', 'Completed', 'Failed', 'Cancelled'] satisfies ListedStatus[]
const WHICH_KEYS = ['code', 'tag', 'name', 'version', 'parent', 'idPrefix', 'createdAfter', 'createdBefore', 'limit']
const FILTER_KEYS = ['status', 'parked', ...WHICH_KEYS, 'cursor']

/** The fields of a list request. */
export function filterOf(filter: InstanceFilter): Record<string, unknown> {
  checkKeys(filter, 'filter', FILTER_KEYS)
  const { status, parked, limit = PAGE, cursor } = filter
  if (status !== undefined && !STATUSES.includes(status)) {
    throw invalidArgument(`status must be one of ${STATUSES.join(', ')}, not ${typeof status === 'string' ? `'${status}'` : kindOf(status)}`)
  }
  if (parked !== undefined && typeof parked !== 'boolean') throw invalidArgument(`parked must be a boolean, not ${kindOf(parked)}`)
  if (checkWhole(limit, 'limit', 1) > MAX_PAGE) throw invalidArgument(`limit must be at most ${MAX_PAGE}, not ${limit}`)
  return { status, parked, ...whichOf(filter), limit, from: cursor === undefined ? undefined : placeOf(cursor) }
}

/** The fields of a request to resume many instances. */
export function resumingOf(filter: ResumeFilter): Record<string, unknown> {
  checkKeys(filter, 'filter', WHICH_KEYS)
  return { ...whichOf(filter), limit: checkWhole(filter.limit ?? BULK, 'limit', 0) }
}

function whichOf(filter: Omit<InstanceFilter, 'status' | 'parked' | 'limit' | 'cursor'>): Record<string, unknown> {
  const { code, tag, name, version, parent, idPrefix, createdAfter, createdBefore } = filter
  return {
    code: code === undefined ? undefined : checkName(code, 'code'),
    tag: tag === undefined ? undefined : checkName(tag, 'tag'),
    name: name === undefined ? undefined : checkName(name, 'name'),
    version: version === undefined ? undefined : checkVersion(version),
    parent: parent === undefined ? undefined : checkInstanceId(parent, 'parent'),
    idPrefix: idPrefix === undefined || idPrefix === '' ? undefined : checkName(idPrefix, 'idPrefix'),
    createdAfter: timeOf(createdAfter, 'createdAfter'),
    createdBefore: timeOf(createdBefore, 'createdBefore'),
  }
}

/** Which roots a bulk call is about. */
export function bulkOf(filter: BulkFilter): Record<string, unknown> {
  checkKeys(filter, 'filter', ['instanceIds', 'completedBefore', 'limit'])
  const { instanceIds, completedBefore, limit = BULK } = filter
  if (instanceIds !== undefined && !Array.isArray(instanceIds)) {
    throw invalidArgument(`instanceIds must be an array, not ${kindOf(instanceIds)}`)
  }
  return {
    instanceIds: instanceIds && [...new Set(instanceIds.map((id) => checkInstanceId(id)))],
    completedBefore: timeOf(completedBefore, 'completedBefore'),
    limit: checkWhole(limit, 'limit', 0),
  }
}

/** Which executions pruning keeps. */
export function pruningOf(options: PruneOptions): Record<string, unknown> {
  checkKeys(options, 'options', ['keepLast', 'completedBefore'])
  const { keepLast, completedBefore } = options
  return {
    keepLast: keepLast === undefined ? undefined : checkWhole(keepLast, 'keepLast', 0),
    completedBefore: timeOf(completedBefore, 'completedBefore'),
  }
}

/** Whether a deletion is forced. */
export function forceOf(force: boolean | { force?: boolean }): boolean {
  const flag = typeof force === 'object' && force !== null ? (checkKeys(force, 'options', ['force']), force.force ?? false) : force
  if (typeof flag !== 'boolean') throw invalidArgument(`force must be a boolean, not ${kindOf(flag)}`)
  return flag
}

/** A place as an opaque text. */
export function cursorOf({ createdAt, instance }: Place): string {
  return Buffer.from(JSON.stringify([createdAt, instance])).toString('base64url')
}

function placeOf(cursor: unknown): Place {
  try {
    const [createdAt, instance] = JSON.parse(Buffer.from(cursor as string, 'base64url').toString()) as [unknown, unknown]
    return { createdAt: Math.min(checkWhole(createdAt, 'cursor', 0), MAX_TIME_MS), instance: checkInstanceId(instance) }
  } catch {
    throw invalidArgument('cursor is not one that listInstances gave')
  }
}

/** A time in ms since 1970. */
export function timeOf(time: Time | undefined, what: string): number | undefined {
  if (time === undefined) return undefined
  const ms = time instanceof Date ? time.getTime() : time
  if (typeof ms !== 'number' || !(ms >= 0 && ms <= MAX_TIME_MS)) {
    throw invalidArgument(`${what} must be a Date or a number of ms, not before 1970`)
  }
  return Math.trunc(ms)
}

/** The latest time that a Date can hold. */
const MAX_TIME_MS = 8.64e15

/** Refuses keys that are not known. */
export function checkKeys(value: object, what: string, keys: readonly string[]): void {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidArgument(`${what} must be an object, not ${kindOf(value)}`)
  const odd = Object.keys(value).find((key) => !keys.includes(key))
  if (odd !== undefined) throw invalidArgument(`${what} has no '${odd}': there is ${keys.join(', ')}`)
}
