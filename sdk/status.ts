/**
 * Shapes in which an instance and its history are shown. The words and texts are part of the contract: a cancelled or
 * poisoned instance is `Failed`, one whose first turn is still to come is `NotFound` to `getStatus`.
 */
import { type ErrorPayload, errorText } from './error-payload.js'

/** An instance as the addon tells it. */
export interface InstanceRecord {
  instance: string
  name: string
  version: string | null
  execution: number
  status: 'Pending' | 'Running' | 'Completed' | 'Failed' | 'Cancelled'
  output: unknown
  error: ErrorPayload | null
  /** Ms since 1970, while it is parked; the status is `Failed` then. */
  parkedAt: number | null
  tag: string | null
  customStatus: string | null
  customStatusVersion: number
  createdAt: number
  updatedAt: number
  parent: string | null
}

/** An instance of a list as the addon tells it. */
export type SummaryRecord = Omit<InstanceRecord, 'output' | 'error' | 'customStatus' | 'customStatusVersion'> & { errorCode: string | null }

/** An execution as the addon tells it. */
export interface ExecutionRecord {
  status: InstanceRecord['status'] | 'ContinuedAsNew'
  output: unknown
  startedAt: number
  completedAt: number | null
  eventCount: number
}

/** How an instance stands. `NotFound` also before its first turn: `isPending` tells it from an unknown id. */
export type StatusWord = 'NotFound' | 'Running' | 'Completed' | 'Failed'

/** What `getStatus` gives. */
export interface OrchestrationStatus {
  status: StatusWord
  /** JSON text of the output, when completed. */
  output?: string
  /** Text of the error, when failed. */
  error?: string
  /** The custom status, if one is set. */
  customStatus?: string
  /** Grows with every change of the custom status. */
  customStatusVersion: number
  /** Present beside `NotFound` when the start was accepted and the first turn is still to come; absent for an unknown id. */
  isPending?: true
}

/** What `waitForOrchestration` gives: the output is parsed. */
export interface OrchestrationResult<O = unknown> extends Omit<OrchestrationStatus, 'output'> {
  output?: O
}

/** What `getInstanceInfo` gives. */
export interface InstanceInfo {
  instanceId: string
  orchestrationName: string
  orchestrationVersion: string
  currentExecutionId: number
  status: StatusWord | 'Pending'
  /** Parsed output, when completed. */
  output?: unknown
  /** Ms since 1970. */
  createdAt: number
  /** Ms since 1970. */
  updatedAt: number
  parentInstanceId?: string
  /** The label that `start` gave it. */
  tag?: string
  /** Present while the instance is parked: stopped without an end, to be continued by `resume`. */
  parked?: Parked
}

/** Why an instance is parked. */
export interface Parked {
  /** What is wrong, for people: the text of `getStatus().error`. */
  reason: string
  /** What is wrong, for programs: `NONDETERMINISM`, `FOREIGN_WAIT`, `CORRUPT`, … */
  code: string
  /** Ms since 1970. */
  since: number
}

/** What `listInstances` gives of each. */
export interface InstanceSummary extends Omit<InstanceInfo, 'output' | 'parked'> {
  /** Code of the error of a failed or parked instance, if it has one. */
  errorCode?: string
  /** Present while it is parked. */
  parked?: Omit<Parked, 'reason'>
}

/** What `getExecutionInfo` gives. */
export interface ExecutionInfo {
  executionId: number
  status: InstanceInfo['status'] | 'ContinuedAsNew'
  /** Parsed output, when completed; the input of the next execution, when continued as new. */
  output?: unknown
  /** Ms since 1970. */
  startedAt: number
  /** Ms since 1970; absent while it runs. */
  completedAt?: number
  eventCount: number
}

/** An event of an execution's history. */
export interface HistoryEvent {
  /** Position, from 1. */
  eventId: number
  /** What happened. */
  kind: string
  /** The event that asked for what this one answers. */
  sourceEventId?: number
  /** Ms since 1970. */
  timestampMs: number
  /** JSON text; its shape depends on the kind. */
  data?: string
}

/** An event as the addon tells it: the data is the kind's fields. */
export interface HistoryRecord {
  eventId: number
  kind: string
  sourceEventId?: number | null
  timestampMs: number
  data: Record<string, unknown>
}

function statusWord<S extends string>(record: { status: S }): Exclude<S, 'Cancelled'> | 'Failed' {
  return record.status === 'Cancelled' ? 'Failed' : (record.status as Exclude<S, 'Cancelled'>)
}

/** The status with the output as JSON text. */
export function statusOf(record: InstanceRecord | null): OrchestrationStatus {
  if (record === null) return { status: 'NotFound', customStatusVersion: 0 }
  if (record.status === 'Pending') return { status: 'NotFound', customStatusVersion: 0, isPending: true }
  const status: OrchestrationStatus = {
    status: statusWord(record) as StatusWord,
    customStatusVersion: record.customStatusVersion,
  }
  if (record.status === 'Completed') status.output = JSON.stringify(record.output ?? null)
  if (record.error !== null) status.error = textOf(record)
  if (record.customStatus !== null) status.customStatus = record.customStatus
  return status
}

/** The status with the output parsed. */
export function resultOf<O>(record: InstanceRecord): OrchestrationResult<O> {
  const { output: _text, ...status } = statusOf(record)
  return record.status === 'Completed' ? { ...status, output: record.output as O } : status
}

/** What is known about a listed instance. */
export function summaryOf(record: SummaryRecord): InstanceSummary {
  const summary: InstanceSummary = baseOf(record)
  if (record.errorCode !== null) summary.errorCode = record.errorCode
  if (record.parkedAt !== null) summary.parked = { code: record.errorCode ?? 'UNKNOWN', since: record.parkedAt }
  return summary
}

function baseOf(record: Omit<SummaryRecord, 'errorCode'>): Omit<InstanceInfo, 'output' | 'parked'> {
  const base: Omit<InstanceInfo, 'output' | 'parked'> = {
    instanceId: record.instance,
    orchestrationName: record.name,
    orchestrationVersion: record.version ?? '',
    currentExecutionId: record.execution,
    status: statusWord(record),
    createdAt: record.createdAt,
    updatedAt: record.updatedAt,
  }
  if (record.parent !== null) base.parentInstanceId = record.parent
  if (record.tag !== null) base.tag = record.tag
  return base
}

/** What is known about an instance. */
export function infoOf(record: InstanceRecord): InstanceInfo {
  const info: InstanceInfo = baseOf(record)
  if (record.status === 'Completed') info.output = record.output
  if (record.parkedAt !== null) info.parked = { reason: textOf(record), code: record.error?.code ?? 'UNKNOWN', since: record.parkedAt }
  return info
}

/** What is known about an execution. */
export function executionOf(executionId: number, record: ExecutionRecord): ExecutionInfo {
  const { startedAt, completedAt, eventCount } = record
  const info: ExecutionInfo = { executionId, status: statusWord(record), startedAt, eventCount }
  if (record.status === 'Completed' || record.status === 'ContinuedAsNew') info.output = record.output
  if (completedAt !== null) info.completedAt = completedAt
  return info
}

/** The text of a failure: for a cancelled instance `canceled: ` and the reason. */
function textOf(record: InstanceRecord): string {
  const { error } = record
  if (error === null) return ''
  return errorText(record.status === 'Cancelled' ? { ...error, code: 'CANCELLED' } : error)
}

/** History in the documented shapes. */
export function historyOf(records: readonly HistoryRecord[]): HistoryEvent[] {
  const byId = new Map(records.map((record) => [record.eventId, record]))
  return records.map((record) => {
    const event: HistoryEvent = { eventId: record.eventId, kind: record.kind, timestampMs: record.timestampMs }
    if (record.sourceEventId !== undefined && record.sourceEventId !== null) event.sourceEventId = record.sourceEventId
    const data = dataOf(record, byId)
    if (data !== undefined) event.data = JSON.stringify(data ?? null)
    return event
  })
}

/** Which fields of a kind are shown; a text means that the field itself is the data. */
const SHOWN: Readonly<Record<string, readonly string[] | string>> = {
  OrchestrationStarted: ['name', 'version', 'input'],
  OrchestrationCompleted: 'output',
  OrchestrationFailed: 'error',
  ActivityFailed: 'error',
  SubOrchestrationFailed: 'error',
  ActivityScheduled: ['name', 'input'],
  ActivityCompleted: 'result',
  SubOrchestrationCompleted: 'result',
  ExternalSubscribed: ['name'],
  QueueSubscribed: ['name'],
  ExternalEvent: ['name', 'data'],
  QueueEventDelivered: ['name', 'data'],
  SubOrchestrationScheduled: ['name', 'instance', 'input'],
  QueueSubscriptionCancelled: ['reason'],
}

function dataOf(record: HistoryRecord, byId: ReadonlyMap<number, HistoryRecord>): unknown {
  const { kind, data } = record
  if (kind === 'TimerCreated') return { fireAtMs: data['fire_at_ms'] }
  if (kind === 'TimerFired') return { fireAtMs: byId.get(record.sourceEventId ?? 0)?.data['fire_at_ms'] }
  const shown = Object.hasOwn(SHOWN, kind) ? SHOWN[kind] : undefined
  if (shown === undefined) return undefined
  if (typeof shown === 'string') return data[shown] ?? null
  return Object.fromEntries(shown.map((field) => [field, data[field] ?? null]))
}
