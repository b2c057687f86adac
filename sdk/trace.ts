/**
 * Log lines of user code: `ctx.traceInfo(...)` and its sisters, and where the log of the process goes.
 *
 * Each line goes to the log of the process with its fields (the addon writes it) and, as an object, to the diagnostics
 * channel `holdfast:trace`. During replay the callers are silent.
 */
import { channel } from 'node:diagnostics_channel'
import { invalidArgument, kindOf } from './ids.js'
import { binding } from './native.js'
import { unwrap } from './unwrap.js'

/** Severity of a log line. */
export type TraceLevel = 'error' | 'warn' | 'info' | 'debug'

/** Which lines are logged: those of this severity and worse. */
export type LogLevel = TraceLevel | 'trace' | 'off'

/** How a line looks: one line of text, several of them, or one JSON object. */
export type LogFormat = 'compact' | 'pretty' | 'json'

/** Where the log of the process goes. */
export interface TracingOptions {
  /** File to whose end the lines are written; made when it is missing. */
  logFile: string
  /** Severity of the lines of orchestrations and activities; of everything else only warnings are logged. Default: `info`. */
  logLevel?: LogLevel
  /** Default: `compact`. */
  logFormat?: LogFormat
}

/** What is logged, and where it comes from. */
export interface TraceRecord {
  level: TraceLevel
  message: string
  source: 'orchestration' | 'activity'
  /** Of the orchestration or activity that logs. */
  name: string
  instanceId: string
  executionId: number
  orchestrationName?: string | null
  orchestrationVersion?: string | null
  activityId?: number
  workerId?: string
  tag?: string | null
}

/** A line as it crosses to the addon. */
export interface NativeLogLine {
  level: string
  message: string
  instanceId: string
  executionId: number
  orchestrationName: string | undefined
  orchestrationVersion: string | undefined
  activityName: string | undefined
  activityId: number | undefined
  workerId: string | undefined
  tag: string | undefined
}

const records = channel('holdfast:trace')

/** Logs one record. */
export function trace(record: TraceRecord): void {
  records.publish(record)
  const isActivity = record.source === 'activity'
  binding().JsLog.logLine({
    level: record.level,
    message: record.message,
    instanceId: record.instanceId,
    executionId: record.executionId,
    orchestrationName: (isActivity ? record.orchestrationName : record.name) ?? undefined,
    orchestrationVersion: record.orchestrationVersion ?? undefined,
    activityName: isActivity ? record.name : undefined,
    activityId: record.activityId,
    workerId: record.workerId,
    tag: record.tag ?? undefined,
  })
}

/**
 * Sends the log of this process to a file: the lines of orchestrations and activities from `logLevel` on, and the engine's
 * warnings. `RUST_LOG` replaces both, for example `RUST_LOG=holdfast_core=debug`. Once for each process and before the first
 * `runtime.start()`, which sends it to stderr otherwise.
 *
 * @example
 * initTracing({ logFile: 'worker.log', logFormat: 'json' })
 */
export function initTracing(options: TracingOptions): void {
  if (typeof options !== 'object' || options === null) throw invalidArgument(`options of initTracing must be an object, not ${kindOf(options)}`)
  const { logFile, logLevel = 'info', logFormat = 'compact' } = options
  if (typeof logFile !== 'string' || logFile === '') throw invalidArgument('logFile must be the name of a file')
  unwrap(binding().JsLog.initTracing(logFile, String(logLevel), String(logFormat)))
}
