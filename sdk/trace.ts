/**
 * Log lines of user code: `ctx.traceInfo(...)` and its sisters. One line on stderr each; `HOLDFAST_LOG_LEVEL` (`error`,
 * `warn`, `info`, `debug`, `off`) says which are written, `info` and above by default. A subscriber of the diagnostics
 * channel `holdfast:trace` gets every record as an object. During replay the callers are silent.
 */
import { channel } from 'node:diagnostics_channel'

/** Severity of a log line. */
export type TraceLevel = 'error' | 'warn' | 'info' | 'debug'

/** What is logged, and where it comes from. */
export interface TraceRecord {
  level: TraceLevel
  message: string
  source: 'orchestration' | 'activity'
  name: string
  instanceId: string
  executionId: number
}

const RANK: Readonly<Record<string, number>> = { off: 0, error: 1, warn: 2, info: 3, debug: 4 }
const records = channel('holdfast:trace')

/** Writes one record. */
export function trace(record: TraceRecord): void {
  records.publish(record)
  const threshold = RANK[process.env['HOLDFAST_LOG_LEVEL']?.trim().toLowerCase() || 'info'] ?? 3
  if ((RANK[record.level] ?? 0) > threshold) return
  const { level, source, name, instanceId, executionId, message } = record
  process.stderr.write(`${level.toUpperCase().padEnd(5)} ${source} ${name} ${instanceId}#${executionId}: ${message}\n`)
}
