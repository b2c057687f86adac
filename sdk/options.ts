/**
 * Options: which there are, what they may hold, and where they come from (argument first, then environment). Defaults live
 * in the engine, once; here an absent option stays absent. A bad one is refused with its name, its value and the rule.
 */
import { HoldfastError } from './errors.js'
import type { LogFormat, LogLevel } from './trace.js'
import { invalidOption as invalid } from './option-errors.js'
import { type NativeTagFilter, type WorkerTagFilter, checkTagFilter, tagFilterOfText, tagsOfText } from './tag-filter.js'

/** A time in ms, or a text with a unit: `'250ms'`, `'30s'`, `'5m'`, `'1h'`, `'7d'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

/** Options of a runtime. */
export interface JsRuntimeOptions {
  /** Turns in progress at once; 0 runs none here. Default: twice the cores, at least 4. */
  orchestrationConcurrency?: number
  /** Activities in progress at once; 0 runs none here. Default: four times the cores, at least 8. */
  workerConcurrency?: number
  /** Shortest time between two empty claims. Default: 100 ms. */
  dispatcherPollIntervalMs?: Duration
  /**
   * Longest sleep when idle. Work of other processes is looked for every second all the same, unless
   * `dispatcherPollIntervalMs` is longer. Default: 5 s.
   */
  dispatcherLongPollTimeoutMs?: Duration
  /** Lease of a turn. Default: 5 s. */
  orchestratorLockTimeoutMs?: Duration
  /** How long before its end a lease of a turn of 15 s or more is renewed. Default: 2 s. */
  orchestratorLockRenewalBufferMs?: Duration
  /** Lease of an activity. Default: 30 s. */
  workerLockTimeoutMs?: Duration
  /** How long before its end a lease of an activity of 15 s or more is renewed. Default: 5 s. */
  workerLockRenewalBufferMs?: Duration
  /** Deliveries of one item before it is poisoned; at least 1. Default: 10. */
  maxAttempts?: number
  /** Time limit of one try of an activity that sets none itself. Default: none. */
  activityTimeoutMs?: Duration
  /** Added to the lease of the second delivery, doubling from then on. Default: 1 s. */
  retryBackoffBaseMs?: Duration
  /** Upper bound of that. Default: 60 s. */
  retryBackoffMaxMs?: Duration
  /** From the abort signal to giving up on an activity. Default: 10 s. */
  activityCancellationGracePeriodMs?: Duration
  /** Stable identity of this node. Default: host name and process id. */
  workerNodeId?: string
  /**
   * Which activities this runtime takes, by tag. One whose tag no running runtime takes waits, for ever: race it against a
   * timer where that can happen. Default: `'defaultOnly'`, those without a tag.
   */
  workerTagFilter?: WorkerTagFilter
  /** The 1 to 5 tags of `workerTagFilter: 'tags'` or `'defaultAnd'`. */
  workerTagFilterTags?: readonly string[]
  /** Time between two heartbeats. Default: 5 s. */
  heartbeatIntervalMs?: Duration
  /** Silence after which a node counts as dead; at least four heartbeat intervals. Default: 30 s. */
  staleAfterMs?: Duration
  /** Live executions kept between turns; 0 replays every turn. Default: 1000. */
  stickyCacheSize?: number
  /** Encoded history bytes of live executions kept between turns; 0 replays every turn. Default: 64 MiB. */
  stickyCacheBytes?: number
  /** Longest input, output, event or error in bytes. Default: 64 MiB. */
  payloadByteLimit?: number
  /** Severity of the lines of orchestrations and activities that are logged. The first runtime of a process decides. Default: `'info'`. */
  logLevel?: LogLevel
  /** How a line looks. The first runtime of a process decides. Default: `'compact'`. */
  logFormat?: LogFormat
  /** Shown with each line of orchestrations and activities. Default: none. */
  serviceName?: string
  /** The same. Default: none. */
  serviceVersion?: string
}

/** Options of a connection pool. */
export interface JsPoolOptions {
  /** Connections at most, 1 to 32. Default: 8. */
  maxClients?: number
  /** Callers waiting for a connection at most. Default: 128. */
  maxWaiting?: number
  /** Longest wait for a connection. Default: 5 s. */
  acquireTimeoutMs?: Duration
  /** Longest query. Default: 15 s. */
  queryTimeoutMs?: Duration
  /** An idle connection is closed after this time. Default: 30 s. */
  idleTimeoutMs?: Duration
  /** Longest connecting. Default: 5 s. */
  connectTimeoutMs?: Duration
  /** Time between two signs of life on an idle connection. Default: 60 s. */
  keepAliveIntervalMs?: Duration
  /** Times an operation is tried again after a broken connection. Default: 3. */
  retryAttempts?: number
  /** First delay of that. Default: 50 ms. */
  retryBaseDelayMs?: Duration
  /** Longest delay of that. Default: 1 s. */
  retryMaxDelayMs?: Duration
  /** Failed connections in a row that open the breaker. Default: 5. */
  breakerThreshold?: number
  /** How long it stays open before a trial. Default: 2 s. */
  breakerOpenMs?: Duration
  /** Whether a transaction-mode pooler is in between. Default: `'auto'`. */
  pooled?: boolean | 'auto'
  /** URL that leads past the pooler, for migrations and heartbeats. Default: the same URL. */
  directUrl?: string
  /** Application name shown in `pg_stat_activity`. Default: `holdfast`. */
  applicationName?: string
  /** Whether connecting brings the schema up to this version, or refuses one of another version. Default: `'apply'`. */
  migrate?: 'apply' | 'verify'
}

/** The same as {@link JsRuntimeOptions}. */
export type RuntimeOptions = JsRuntimeOptions

/** The same as {@link JsPoolOptions}. */
export type PoolOptions = JsPoolOptions

type Checked<T> = { [K in keyof T]: T[K] extends Duration | undefined ? number : T[K] }

/** Runtime options as they cross to the addon: every time a number of ms. */
export type NativeRuntimeOptions = Omit<Checked<RuntimeOptions>, keyof NativeTagFilter> & NativeTagFilter

/** Pool options as they cross to the addon: `pooled` is a word. */
export type NativePoolOptions = Omit<Checked<PoolOptions>, 'pooled'> & { pooled?: 'auto' | 'true' | 'false' }

type Kind =
  | { readonly is: 'count' | 'ms'; readonly min: number; readonly max: number }
  | { readonly is: 'text' }
  | { readonly is: 'word'; readonly words: readonly (string | boolean)[] }
  /** Checked together with another option; here only its text is read. */
  | { readonly is: 'joint'; readonly read: (text: string) => unknown }

/** The engine counts in 32 bits. */
const MAX_COUNT = 4_294_967_295
/** A hundred years: far above any sensible time and still exact in every unit. */
const MAX_MS = 100 * 365 * 86_400_000

const count = (min: number, max = MAX_COUNT): Kind => ({ is: 'count', min, max })
const ms = (min = 0): Kind => ({ is: 'ms', min, max: MAX_MS })
const word = (...words: (string | boolean)[]): Kind => ({ is: 'word', words })
const text: Kind = { is: 'text' }

type Table<T> = Readonly<Record<keyof T & string, Kind>>

const RUNTIME: Table<Required<NativeRuntimeOptions>> = {
  orchestrationConcurrency: count(0),
  workerConcurrency: count(0),
  dispatcherPollIntervalMs: ms(1),
  dispatcherLongPollTimeoutMs: ms(1),
  orchestratorLockTimeoutMs: ms(1),
  orchestratorLockRenewalBufferMs: ms(),
  workerLockTimeoutMs: ms(1),
  workerLockRenewalBufferMs: ms(),
  maxAttempts: count(1),
  activityTimeoutMs: ms(1),
  retryBackoffBaseMs: ms(),
  retryBackoffMaxMs: ms(),
  activityCancellationGracePeriodMs: ms(),
  workerNodeId: text,
  workerTagFilter: { is: 'joint', read: tagFilterOfText },
  workerTagFilterTags: { is: 'joint', read: tagsOfText },
  heartbeatIntervalMs: ms(1),
  staleAfterMs: ms(1),
  stickyCacheSize: count(0),
  stickyCacheBytes: count(0, Number.MAX_SAFE_INTEGER),
  // PostgreSQL holds at most 1 GiB in one value.
  payloadByteLimit: count(1, 1_000_000_000),
  logLevel: word('off', 'error', 'warn', 'info', 'debug', 'trace'),
  logFormat: word('compact', 'pretty', 'json'),
  serviceName: text,
  serviceVersion: text,
}

const POOL: Table<Required<NativePoolOptions>> = {
  maxClients: count(1, 32),
  maxWaiting: count(0),
  acquireTimeoutMs: ms(1),
  queryTimeoutMs: ms(1),
  idleTimeoutMs: ms(1),
  connectTimeoutMs: ms(1),
  keepAliveIntervalMs: ms(1),
  retryAttempts: count(0),
  retryBaseDelayMs: ms(),
  retryMaxDelayMs: ms(),
  breakerThreshold: count(1),
  breakerOpenMs: ms(1),
  pooled: word('auto', true, false),
  directUrl: text,
  applicationName: text,
  migrate: word('apply', 'verify'),
}

/** Values that a rule between two options needs when only one of them is given; the engine's defaults. */
const ASSUMED: Readonly<Record<string, number>> = {
  heartbeatIntervalMs: 5000,
  staleAfterMs: 30_000,
  orchestratorLockTimeoutMs: 5000,
  orchestratorLockRenewalBufferMs: 2000,
  workerLockTimeoutMs: 30_000,
  workerLockRenewalBufferMs: 5000,
  retryBackoffBaseMs: 1000,
  retryBackoffMaxMs: 60_000,
  retryBaseDelayMs: 50,
  retryMaxDelayMs: 1000,
}

/** Pairs in which the first must not exceed the second. */
const ORDERED: readonly (readonly [string, string])[] = [
  ['retryBackoffBaseMs', 'retryBackoffMaxMs'],
  ['retryBaseDelayMs', 'retryMaxDelayMs'],
]

/** Below this a lease is renewed at half its time and the buffer is not used. */
const BUFFER_FROM_MS = 15_000

type Environment = Readonly<Record<string, string | undefined>>

/** Checks the options of a runtime and adds those of the environment. */
export function checkRuntimeOptions(given: RuntimeOptions | undefined, environment: Environment = process.env): NativeRuntimeOptions {
  const { dispatcherPollInterval, ...options } = record(given, 'runtime options')
  if (dispatcherPollInterval !== undefined && options['dispatcherPollIntervalMs'] === undefined) {
    options['dispatcherPollIntervalMs'] = dispatcherPollInterval
  }
  const checked = checkAll(options, RUNTIME, (name) => environment[`HOLDFAST_${upperSnake(name)}`])
  checkLease(checked, 'orchestratorLockTimeoutMs', 'orchestratorLockRenewalBufferMs')
  checkLease(checked, 'workerLockTimeoutMs', 'workerLockRenewalBufferMs')
  checkStale(checked)
  checkOrder(checked)
  const { workerTagFilter, workerTagFilterTags, ...others } = checked
  return { ...others, ...checkTagFilter(workerTagFilter, workerTagFilterTags) } as NativeRuntimeOptions
}

/** Checks the options of a pool and adds those of the environment. */
export function checkPoolOptions(given: PoolOptions | undefined, environment: Environment = process.env): NativePoolOptions {
  const variable = (name: string): string => (name === 'directUrl' ? 'HOLDFAST_DIRECT_URL' : `HOLDFAST_POOL_${upperSnake(name)}`)
  const checked = checkAll(record(given, 'pool options'), POOL, (name) => environment[variable(name)])
  checkOrder(checked)
  if (checked['pooled'] !== undefined) checked['pooled'] = String(checked['pooled'])
  return checked as NativePoolOptions
}

type Values = Record<string, unknown>

function record(given: unknown, what: string): Values {
  if (given === undefined || given === null) return {}
  if (typeof given !== 'object' || Array.isArray(given)) throw invalid(what, given, 'an object')
  return { ...given }
}

function checkAll(given: Values, table: Readonly<Record<string, Kind>>, variable: (name: string) => string | undefined): Values {
  for (const name of Object.keys(given)) {
    if (!Object.hasOwn(table, name)) {
      throw new HoldfastError(`unknown option '${name}'${hint(name, Object.keys(table))}`, { code: 'INVALID_OPTION' })
    }
  }
  const checked: Values = {}
  for (const [name, kind] of Object.entries(table)) {
    const value = given[name] ?? fromText(variable(name), kind)
    if (value !== undefined) checked[name] = check(name, value, kind)
  }
  return checked
}

/** The value that an environment variable's text stands for; blank is unset. */
function fromText(variable: string | undefined, kind: Kind): unknown {
  const trimmed = variable?.trim()
  if (trimmed === undefined || trimmed === '') return undefined
  if (kind.is === 'word') return trimmed === 'true' ? true : trimmed === 'false' ? false : trimmed
  if (kind.is === 'text') return trimmed
  if (kind.is === 'joint') return kind.read(trimmed)
  return /^[-+.\d]/.test(trimmed) && !Number.isNaN(Number(trimmed)) ? Number(trimmed) : trimmed
}

function check(name: string, value: unknown, kind: Kind): unknown {
  switch (kind.is) {
    case 'count':
      return checkNumber(name, value, value, kind.min, kind.max, 'a whole number')
    case 'ms':
      return checkNumber(name, value, toMs(value), kind.min, kind.max, "a whole number of ms, or a text such as '30s'")
    case 'text':
      if (typeof value !== 'string' || value === '' || value.includes('\0') || !value.isWellFormed()) {
        throw invalid(name, value, 'a non-empty string')
      }
      return value
    case 'joint':
      return value
    case 'word':
      if (!kind.words.includes(value as string)) {
        throw invalid(name, value, `one of ${kind.words.map((each) => JSON.stringify(each)).join(', ')}`)
      }
      return value
  }
}

function checkNumber(name: string, given: unknown, value: unknown, min: number, max: number, rule: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min || value > max) {
    throw invalid(name, given, `${rule} from ${min} to ${max}`)
  }
  return value
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }

function toMs(value: unknown): unknown {
  if (typeof value !== 'string') return value
  const match = /^(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)$/.exec(value.trim())
  if (match === null) return value
  // Rounded, because 1.1 s is not a whole number of ms in binary fractions.
  return Math.round(Number(match[1]) * (UNITS[match[2] ?? ''] ?? Number.NaN))
}

function numberIn(values: Values, name: string): number {
  return (values[name] as number | undefined) ?? ASSUMED[name] ?? 0
}

function checkLease(values: Values, timeout: string, buffer: string): void {
  const lease = numberIn(values, timeout)
  if (lease < BUFFER_FROM_MS || numberIn(values, buffer) < lease) return
  throw invalid(buffer, numberIn(values, buffer), `less than ${timeout} (${lease}) when that is ${BUFFER_FROM_MS} or more`)
}

function checkStale(values: Values): void {
  const interval = numberIn(values, 'heartbeatIntervalMs')
  const stale = numberIn(values, 'staleAfterMs')
  if (stale < 4 * interval) throw invalid('staleAfterMs', stale, `at least four times heartbeatIntervalMs (${interval})`)
}

function checkOrder(values: Values): void {
  for (const [base, max] of ORDERED) {
    // Only the options of this table can be there; the other table's pairs compare their defaults.
    if (numberIn(values, base) <= numberIn(values, max)) continue
    throw invalid(base, numberIn(values, base), `at most ${max} (${numberIn(values, max)})`)
  }
}

function hint(name: string, known: readonly string[]): string {
  const wanted = name.toLowerCase()
  const near = known.find((each) => each.toLowerCase() === wanted || each.toLowerCase() === `${wanted}ms`)
  return near === undefined ? '' : `; did you mean '${near}'?`
}

function upperSnake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()
}
