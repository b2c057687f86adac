/**
 * The half of the client that looks and tidies up: status, lists, trees, sizes, deleting, pruning.
 *
 * Nothing here needs a runtime. Filters and options are checked before anything is asked; an unknown key is refused by name.
 * Every call takes `{ signal }` as its last argument.
 */
import { type AbortOptions, type WaitOptions, abortable, pauseFor, signalOf, splitSignal, waitOf } from './abort.js'
import { HoldfastError, TimeoutError } from './errors.js'
import { type Explanation, type ExplanationRecord, explanationOf } from './explain.js'
import { checkInstanceId, checkName, checkWhole } from './ids.js'
import {
  type BulkFilter,
  type DeleteResult,
  type InstanceFilter,
  type InstancePage,
  type InstanceTree,
  type OrchestrationStats,
  type PageRecord,
  type PruneOptions,
  type PruneResult,
  type QueueDepths,
  type ResumeFilter,
  type ResumeResult,
  type RetryResult,
  type SystemMetrics,
  bulkOf,
  cursorOf,
  filterOf,
  forceOf,
  pruningOf,
  resumingOf,
} from './management-shapes.js'
import type { NativeClient } from './native.js'
import {
  type ExecutionInfo,
  type ExecutionRecord,
  type HistoryEvent,
  type HistoryRecord,
  type InstanceInfo,
  type InstanceRecord,
  type OrchestrationResult,
  type OrchestrationStatus,
  executionOf,
  historyOf,
  infoOf,
  resultOf,
  statusOf,
  summaryOf,
} from './status.js'
import { unwrap } from './unwrap.js'

/** How long `waitForStatusChange` waits unless told otherwise. */
const WAIT_MS = 30_000

/** How often it looks unless told otherwise. */
const POLL_MS = 500

/** Longest pause between two looks of `waitForValue`, in ms. */
const MAX_VALUE_PAUSE_MS = 100

interface StatsRecord {
  events: number
  bytes: number
  carriedMessages: number
  keys: number
  valueBytes: number
}

/** Looks at instances and tidies them up; every {@link Client} can do this. */
export abstract class Management {
  readonly #native: NativeClient

  /** @internal */
  protected constructor(native: NativeClient) {
    this.#native = native
  }

  /** How an instance stands, the output as JSON text. */
  async getStatus(instanceId: string, options?: AbortOptions): Promise<OrchestrationStatus> {
    return statusOf(await this.#get(instanceId, signalOf(options)))
  }

  /** The same as `getStatus`. */
  async getOrchestrationStatus(instanceId: string, options?: AbortOptions): Promise<OrchestrationStatus> {
    return await this.getStatus(instanceId, options)
  }

  /**
   * Waits until the version of the custom status is higher than `lastSeenVersion`, or the instance has ended. Rejects with
   * {@link TimeoutError} when the time is over.
   *
   * @example
   * let seen = 0
   * for (;;) {
   *   const { status, customStatus, customStatusVersion } = await client.waitForStatusChange('order-17', seen)
   *   if (status !== 'Running') break
   *   console.log(customStatus)
   *   seen = customStatusVersion
   * }
   */
  async waitForStatusChange<O = unknown>(
    instanceId: string,
    lastSeenVersion: number,
    pollIntervalMs: number = POLL_MS,
    timeout?: number | WaitOptions,
    options?: AbortOptions,
  ): Promise<OrchestrationResult<O>> {
    const { timeoutMs, signal } = waitOf(timeout, options, WAIT_MS)
    const id = checkInstanceId(instanceId)
    const seen = checkWhole(lastSeenVersion, 'lastSeenVersion', 0)
    const pause = checkWhole(pollIntervalMs, 'pollIntervalMs', 1)
    const end = performance.now() + timeoutMs
    for (;;) {
      const record = await this.#get(id, signal)
      const isOver = record !== null && record.status !== 'Pending' && record.status !== 'Running'
      if (record !== null && (isOver || record.customStatusVersion > seen)) return resultOf<O>(record)
      const left = end - performance.now()
      if (left <= 0) {
        const message = `Operation timed out: the custom status of instance '${id}' did not pass version ${seen} within ${timeoutMs} ms`
        throw new TimeoutError(message, { code: 'TIMEOUT', retryable: true })
      }
      await pauseFor(Math.min(pause, left), signal)
    }
  }

  /** What is known about an instance; rejects when there is none. */
  async getInstanceInfo(instanceId: string, options?: AbortOptions): Promise<InstanceInfo> {
    const record = await this.#get(instanceId, signalOf(options))
    if (record === null) throw notFound(`Instance ${instanceId} not found`)
    return infoOf(record)
  }

  /** What is known about one execution of an instance; rejects when there is none. */
  async getExecutionInfo(instanceId: string, executionId: number, options?: AbortOptions): Promise<ExecutionInfo> {
    const instance = checkInstanceId(instanceId)
    const execution = checkWhole(executionId, 'executionId', 1)
    const record = await this.#ask<ExecutionRecord | null>({ op: 'execution', instance, execution }, options)
    if (record === null) throw notFound(`Execution ${execution} of instance ${instance} not found`)
    return executionOf(execution, record)
  }

  /** Numbers of the executions of an instance, ascending; the first is 1 unless it was pruned. */
  async listExecutions(instanceId: string, options?: AbortOptions): Promise<number[]> {
    return await this.#ask<number[]>({ op: 'executions', instance: checkInstanceId(instanceId) }, options)
  }

  /** The recorded events of an execution, in order. */
  async readExecutionHistory(instanceId: string, executionId: number, options?: AbortOptions): Promise<HistoryEvent[]> {
    const id = checkInstanceId(instanceId)
    const execution = checkWhole(executionId, 'executionId', 1)
    const outcome = await abortable(this.#native, signalOf(options), (ticket) => this.#native.history(id, execution, ticket))
    return historyOf(JSON.parse(unwrap(outcome)) as HistoryRecord[])
  }

  /** Ids of all instances, newest first. For many of them take `listInstances`. */
  async listAllInstances(options?: AbortOptions): Promise<string[]> {
    return await this.#ask<string[]>({ op: 'ids' }, options)
  }

  /** Ids of the instances with a status, newest first; cancelled ones count as `Failed`. */
  async listInstancesByStatus(status: string, options?: AbortOptions): Promise<string[]> {
    return await this.#ask<string[]>({ op: 'ids', status: String(status) }, options)
  }

  /**
   * One page of the instances that pass a filter, newest first.
   *
   * @example
   * let cursor: string | undefined
   * do {
   *   const page = await client.listInstances({ status: 'Failed', name: 'checkout', limit: 50, cursor })
   *   for (const { instanceId } of page.instances) console.log(instanceId)
   *   cursor = page.cursor
   * } while (cursor !== undefined)
   */
  async listInstances(filter: InstanceFilter = {}, options?: AbortOptions): Promise<InstancePage> {
    const page = await this.#ask<PageRecord>({ op: 'list', ...filterOf(filter) }, options)
    const result: InstancePage = { instances: page.instances.map(summaryOf) }
    if (page.next !== null) result.cursor = cursorOf(page.next)
    return result
  }

  /**
   * Why an instance is not running, from the engine itself: what it waits for, who has it, what is wrong. Works for every id,
   * also for one that nobody knows.
   *
   * @example
   * console.log(String(await client.explain('order-17')))
   */
  async explain(instanceId: string, options?: AbortOptions): Promise<Explanation> {
    const request = { op: 'explain', instance: checkInstanceId(instanceId) }
    return explanationOf(await this.#ask<ExplanationRecord>(request, options))
  }

  /**
   * Continues a parked instance where it stands, after a deploy of code that fits its history. One that still does not fit is
   * parked again. Rejects when there is no such instance.
   *
   * @example
   * for (const { instanceId } of (await client.listInstances({ parked: true })).instances) await client.resume(instanceId)
   */
  async resume(instanceId: string, options?: AbortOptions): Promise<ResumeResult> {
    return await this.#ask<ResumeResult>({ op: 'resume', instance: checkInstanceId(instanceId) }, options)
  }

  /** Continues all parked instances that pass a filter, and tells how many these are. */
  async resumeBulk(filter: ResumeFilter = {}, options?: AbortOptions): Promise<{ resumed: number }> {
    return await this.#ask<{ resumed: number }>({ op: 'resumeBulk', ...resumingOf(filter) }, options)
  }

  /**
   * Runs a poisoned instance again where it stood, with deliveries anew: steps that have a result do not run again, messages
   * that waited are still there. It is recorded in the history as `OrchestrationRetried`. A parent that was told of the end is
   * not told again. Rejects when there is no such instance.
   *
   * @example
   * const { instances } = await client.listInstances({ code: 'POISONED' })
   * for (const { instanceId } of instances) await client.retryInstance(instanceId)
   */
  async retryInstance(instanceId: string, options?: AbortOptions): Promise<RetryResult> {
    return await this.#ask<RetryResult>({ op: 'retry', instance: checkInstanceId(instanceId) }, options)
  }

  /** An instance with all its descendants; rejects when there is none. */
  async getInstanceTree(instanceId: string, options?: AbortOptions): Promise<InstanceTree> {
    const rootId = checkInstanceId(instanceId)
    const allIds = await this.#ask<string[]>({ op: 'tree', instance: rootId }, options)
    if (allIds.length === 0) throw notFound(`Instance ${rootId} not found`)
    return { rootId, allIds, size: allIds.length }
  }

  /**
   * Deletes an instance with all its descendants, or nothing. A child cannot be deleted alone. An instance that runs, or has
   * a descendant that runs, is deleted with `force` only: its activities are told to stop, and what they still do is ignored.
   */
  async deleteInstance(instanceId: string, force: boolean | { force?: boolean } = false, options?: AbortOptions): Promise<DeleteResult> {
    const request = { op: 'delete', instance: checkInstanceId(instanceId), force: forceOf(force) }
    return await this.#ask<DeleteResult>(request, options)
  }

  /** Deletes instances that have ended, oldest first, with their descendants; running ones and children are passed over. */
  async deleteInstanceBulk(filter: BulkFilter = {}, options?: AbortOptions): Promise<DeleteResult> {
    return await this.#ask<DeleteResult>({ op: 'deleteBulk', roots: bulkOf(filter) }, options)
  }

  /** Deletes old executions of an instance that continued as new; never the current one. */
  async pruneExecutions(instanceId: string, options: PruneOptions & AbortOptions = {}): Promise<PruneResult> {
    const { signal, others } = splitSignal(options)
    const request = { op: 'prune', instance: checkInstanceId(instanceId), retention: pruningOf(others) }
    return await this.#ask<PruneResult>(request, { signal })
  }

  /** The same for many instances, running ones included; children are passed over. */
  async pruneExecutionsBulk(filter: BulkFilter = {}, options: PruneOptions & AbortOptions = {}): Promise<PruneResult> {
    const { signal, others } = splitSignal(options)
    const request = { op: 'pruneBulk', roots: bulkOf(filter), retention: pruningOf(others) }
    return await this.#ask<PruneResult>(request, { signal })
  }

  /** Counts of everything. It reads all instances: for dashboards, not for every request. */
  async getSystemMetrics(options?: AbortOptions): Promise<SystemMetrics> {
    return await this.#ask<SystemMetrics>({ op: 'metrics' }, options)
  }

  /** How much work waits that a runtime could take now. */
  async getQueueDepths(options?: AbortOptions): Promise<QueueDepths> {
    const { turns, activities } = await this.#ask<{ turns: number; activities: number }>({ op: 'depths' }, options)
    return { orchestratorQueue: turns, workerQueue: activities, timerQueue: 0 }
  }

  /** Size of the current execution of an instance; null when there is none. */
  async getOrchestrationStats(instanceId: string, options?: AbortOptions): Promise<OrchestrationStats | null> {
    const instance = checkInstanceId(instanceId)
    const stats = await this.#ask<StatsRecord | null>({ op: 'stats', instance }, options)
    if (stats === null) return null
    return {
      historyEventCount: stats.events,
      historySizeBytes: stats.bytes,
      queuePendingCount: stats.carriedMessages,
      kvUserKeyCount: stats.keys,
      kvTotalValueBytes: stats.valueBytes,
    }
  }

  /** The value that an instance keeps under a key, also after its end; null when there is none. */
  async getValue(instanceId: string, key: string, options?: AbortOptions): Promise<string | null> {
    const request = { op: 'value', instance: checkInstanceId(instanceId), key: checkName(key, 'key') }
    return await this.#ask<string | null>(request, options)
  }

  /** All values that an instance keeps, by key. */
  async getKvAllValues(instanceId: string, options?: AbortOptions): Promise<Record<string, string>> {
    const request = { op: 'values', instance: checkInstanceId(instanceId) }
    return Object.fromEntries(await this.#ask<[string, string][]>(request, options))
  }

  /**
   * Waits until an instance keeps a value under a key, and gives it. Rejects with {@link TimeoutError} when the time is over: 30 s
   * by default.
   *
   * @example
   * const url = await client.waitForValue('order-17', 'payment-url')
   */
  async waitForValue(instanceId: string, key: string, timeout?: number | WaitOptions, options?: AbortOptions): Promise<string> {
    const { timeoutMs, signal } = waitOf(timeout, options, WAIT_MS)
    const end = performance.now() + timeoutMs
    for (let pause = 5; ; pause = Math.min(pause * 2, MAX_VALUE_PAUSE_MS)) {
      const value = await this.getValue(instanceId, key, { signal })
      if (value !== null) return value
      const left = end - performance.now()
      if (left <= 0) {
        const message = `Timed out waiting for value '${key}' on instance '${instanceId}'`
        throw new TimeoutError(message, { code: 'TIMEOUT', retryable: true })
      }
      await pauseFor(Math.min(pause, left), signal)
    }
  }

  /** @internal What was accepted and can never end: nothing in a sound database. Reads whole tables; for tests. */
  async audit(): Promise<{ what: string; instance: string; event: number | null }[]> {
    return await this.#ask<{ what: string; instance: string; event: number | null }[]>({ op: 'audit' })
  }

  async #get(instanceId: string, signal?: AbortSignal): Promise<InstanceRecord | null> {
    const id = checkInstanceId(instanceId)
    const text = unwrap(await abortable(this.#native, signal, (ticket) => this.#native.get(id, ticket)))
    return text === null || text === undefined ? null : (JSON.parse(text) as InstanceRecord | null)
  }

  async #ask<T>(request: { op: string; [field: string]: unknown }, options?: AbortOptions): Promise<T> {
    const text = JSON.stringify(request)
    return JSON.parse(unwrap(await abortable(this.#native, signalOf(options), (ticket) => this.#native.manage(text, ticket)))) as T
  }
}

function notFound(message: string): HoldfastError {
  return new HoldfastError(message, { code: 'NOT_FOUND' })
}
