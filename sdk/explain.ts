/**
 * Why is this instance not running? The engine's answer in fields, and in words for people.
 */
import { type ErrorPayload, errorText } from './error-payload.js'
import type { Parked } from './status.js'

/** One thing that an instance waits for. Times are ms since 1970, by the database's clock. */
export type Waiting =
  | {
      kind: 'timer'
      /** When it fires. */
      until: number
    }
  | {
      /** A one-shot event, or the next message of a queue. */
      kind: 'event' | 'queue'
      name: string
    }
  | {
      kind: 'activity'
      name: string
      /** The event that scheduled it. */
      event: number
      /** Try of its retry policy, from 1. */
      attempt: number
      /** Claims of this try that were not given back; 0 before the first. */
      delivery: number
      /** While nobody runs it: when it may be taken. */
      nextAt?: number
      /** While it runs: the node. */
      leasedBy?: string
      /** While it runs: until when, unless renewed. */
      leaseUntil?: number
      /** While nobody runs it: the node that died while it held it. */
      lostBy?: string
      /** What its body told last with `ctx.heartbeat`. */
      heartbeatDetails?: unknown
      /** When it told that. */
      heartbeatAt?: number
      tag?: string
      session?: string
    }
  | {
      kind: 'child'
      instanceId: string
      name: string
      /** Its status, or `Parked` with the code. */
      status: string
    }

/** How the next turn of an instance stands. */
export interface TurnState {
  /** A node may take it now. */
  due: boolean
  /** When it is due, if that is known. */
  dueAt?: number
  /** The node that has it. */
  leasedBy?: string
  /** Until when that node has it, unless it renews. */
  leaseUntil?: number
  /** Claims of this turn that were not given back. */
  deliveries: number
  /** Messages that wait for it, counted up to 1001. */
  messages: number
}

/** What `explain` gives. */
export interface Explanation {
  instanceId: string
  /** `Parked` where the other calls say `Failed`; `NotFound` for an id that nobody has started, and for a job that has not ended. */
  status: 'NotFound' | 'Pending' | 'Running' | 'Completed' | 'Failed' | 'Cancelled' | 'Parked'
  orchestrationName?: string
  /** Of a background job: its activity. */
  activityName?: string
  /** Absent until the first turn has chosen it. */
  orchestrationVersion?: string
  /** One sentence. */
  summary: string
  /** At most 100 of each kind. */
  waiting: Waiting[]
  /** Absent when it has ended, or there is no such instance. */
  turn?: TurnState
  /** Present while it is parked. */
  parked?: Parked
  /** What keeps it from going on, apart from what it waits for; such as `no live node has activity mail`. */
  problems: string[]
  /** All of it in lines for people; what `toString()` gives. */
  text: string
  toString(): string
}

/** An explanation as the addon tells it. */
export interface ExplanationRecord {
  instance: string
  status: Explanation['status']
  name: string | null
  version: string | null
  job?: string
  execution: number
  error: ErrorPayload | null
  parkedAt: number | null
  waiting: Waiting[]
  turn: TurnState | null
  problems: string[]
  now: number
}

class Explained implements Explanation {
  readonly instanceId: string
  readonly status: Explanation['status']
  declare readonly orchestrationName?: string
  declare readonly activityName?: string
  declare readonly orchestrationVersion?: string
  readonly summary: string
  readonly waiting: Waiting[]
  declare readonly turn?: TurnState
  declare readonly parked?: Parked
  readonly problems: string[]
  readonly text: string

  constructor(record: ExplanationRecord) {
    this.instanceId = record.instance
    this.status = record.status
    if (record.name !== null) this.orchestrationName = record.name
    if (record.job !== undefined) this.activityName = record.job
    if (record.version !== null) this.orchestrationVersion = record.version
    this.waiting = record.waiting
    if (record.turn !== null) this.turn = record.turn
    if (record.parkedAt !== null) {
      const code = record.error?.code ?? 'UNKNOWN'
      this.parked = { reason: record.error === null ? code : errorText(record.error), code, since: record.parkedAt }
    }
    this.problems = record.problems
    this.summary = summaryOf(record)
    const title = [record.instance, record.name, record.version, record.job].filter((part) => part !== null && part !== undefined).join(' ')
    const lines = [...record.problems.map((each) => `problem: ${each}`), ...record.waiting.map((each) => `waits for ${waitText(each)}`)]
    this.text = [`${title}: ${this.summary}`, ...lines.map((line) => `  ${line}`)].join('\n')
  }

  toString(): string {
    return this.text
  }
}

/** The answer in the documented shape. */
export function explanationOf(record: ExplanationRecord): Explanation {
  return new Explained(record)
}

function summaryOf(record: ExplanationRecord): string {
  const { status, waiting, turn, problems, error } = record
  if (status === 'NotFound') return problems[0] ?? (waiting.length > 0 ? `a job: ${waitsText(waiting)}` : 'no such instance')
  if (status === 'Completed') return 'completed'
  if (status === 'Parked') return `parked: ${firstLine(error)}`
  if (status === 'Failed' || status === 'Cancelled') return `${status.toLowerCase()}: ${firstLine(error)}`
  if (turn?.leasedBy !== undefined) return `its turn runs on node ${turn.leasedBy}`
  if (problems.length > 0) return problems[0] as string
  if (turn?.due === true) return status === 'Pending' ? 'its first turn is due' : 'its turn is due'
  if (waiting.length > 0) return `waits for ${waitsText(waiting)}`
  return turn?.dueAt === undefined ? 'waits for nothing that is known' : `waits until ${timeText(turn.dueAt)}`
}

function waitsText(waiting: readonly Waiting[]): string {
  const [first, ...rest] = waiting
  if (first === undefined) return ''
  return rest.length === 0 ? waitText(first) : `${waitText(first)} and ${rest.length} more`
}

function waitText(wait: Waiting): string {
  switch (wait.kind) {
    case 'timer':
      return `a timer until ${timeText(wait.until)}`
    case 'event':
      return `event '${wait.name}'`
    case 'queue':
      return `a message of queue '${wait.name}'`
    case 'child':
      return `child ${wait.instanceId} (${wait.name}, ${wait.status})`
    case 'activity':
      return `activity '${wait.name}' (${activityText(wait)})`
  }
}

function activityText(wait: Extract<Waiting, { kind: 'activity' }>): string {
  const parts = [`attempt ${wait.attempt}`]
  if (wait.delivery > 1) parts.push(`delivery ${wait.delivery}`)
  if (wait.leasedBy !== undefined) parts.push(`runs on node ${wait.leasedBy}, leased until ${timeText(wait.leaseUntil)}`)
  else parts.push(`may be taken from ${timeText(wait.nextAt)}`)
  if (wait.lostBy !== undefined) parts.push(`lost by node ${wait.lostBy}`)
  if (wait.heartbeatDetails !== undefined) parts.push(`told ${shortly(wait.heartbeatDetails)} at ${timeText(wait.heartbeatAt)}`)
  if (wait.tag !== undefined) parts.push(`tag ${wait.tag}`)
  if (wait.session !== undefined) parts.push(`session ${wait.session}`)
  return parts.join(', ')
}

/** Details as one short line. */
function shortly(details: unknown): string {
  const text = JSON.stringify(details) ?? 'nothing'
  return text.length > 80 ? `${text.slice(0, 79)}…` : text
}

function timeText(ms: number | undefined): string {
  if (ms === undefined) return 'ever'
  const date = new Date(ms)
  return Number.isNaN(date.getTime()) ? `${ms} ms since 1970` : date.toISOString()
}

function firstLine(error: ErrorPayload | null): string {
  return (error?.message ?? 'no reason recorded').split('\n', 1)[0] as string
}
