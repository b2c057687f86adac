/**
 * What is given as options, read: unknown names and wrong types are refused here, the environment fills in what the argument
 * leaves open, and each value's source is noted. Defaults and the rules across options are the engine's, once.
 */
import { HoldfastError } from './errors.js'
import { nearest } from './nearest.js'
import { invalidOption as invalid } from './option-errors.js'
import type { JsPoolOptions, JsRuntimeOptions, OptionSource, ReplayVersionRange } from './options.js'
import { type NativeTagFilter, checkTagFilter, tagFilterOfText, tagsOfText } from './tag-filter.js'

/** Runtime options as they cross to the addon: every time a number of ms, the tag filter a word and a list. */
export type NativeRuntimeOptions = {
  [K in Exclude<keyof JsRuntimeOptions, keyof NativeTagFilter>]?: Plain<JsRuntimeOptions[K]>
} & NativeTagFilter

/** Pool options as they cross to the addon: `pooled` is a word. */
export type NativePoolOptions = { [K in keyof JsPoolOptions]?: K extends 'pooled' ? string : Plain<JsPoolOptions[K]> }

type Plain<V> = V extends number | string | undefined ? (number extends V ? number : V) : V

/** Checked options and where each one that is not the default comes from. */
export interface Given<T> {
  options: T
  sources: ReadonlyMap<string, OptionSource>
}

type Kind =
  | { readonly is: 'count' | 'ms'; readonly min: number; readonly max: number }
  | { readonly is: 'text' | 'versions' }
  /** Checked together with another option; here only its text is read. */
  | { readonly is: 'joint'; readonly read: (text: string) => unknown }
  | { readonly is: 'word'; readonly words: readonly (string | boolean)[] }

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
  unregisteredBackoffBaseMs: ms(),
  unregisteredBackoffMaxMs: ms(),
  workerTagFilter: { is: 'joint', read: tagFilterOfText },
  workerTagFilterTags: { is: 'joint', read: tagsOfText },
  supportedReplayVersions: { is: 'versions' },
  orchestratorLockTimeoutMs: ms(1),
  orchestratorLockRenewalBufferMs: ms(),
  workerLockTimeoutMs: ms(1),
  workerLockRenewalBufferMs: ms(),
  activityRowDelayMs: ms(),
  maxAttempts: count(1),
  retryBackoffBaseMs: ms(),
  retryBackoffMaxMs: ms(),
  sessionLockTimeoutMs: ms(1),
  sessionLockRenewalBufferMs: ms(),
  sessionIdleTimeoutMs: ms(1),
  sessionCleanupIntervalMs: ms(1),
  maxSessionsPerRuntime: count(0),
  heartbeatIntervalMs: ms(1),
  staleAfterMs: ms(1),
  workerNodeId: text,
  selfFenceMarginMs: ms(),
  listener: word('each', 'elected', 'off'),
  eventLoopStallTimeoutMs: ms(),
  eventLoopHangTimeoutMs: ms(),
  eventLoopHangAction: word('fence', 'exit'),
  stickyCacheSize: count(0),
  stickyCacheBytes: count(0, Number.MAX_SAFE_INTEGER),
  activityTimeoutMs: ms(1),
  activityCancellationGracePeriodMs: ms(),
  payloadByteLimit: count(1),
  historyEventLimit: count(1),
  historyByteLimit: count(1),
  fanOutLimit: count(1),
  mailboxLimit: count(1),
  retentionMs: ms(1),
  unknownInstanceRetentionMs: ms(1),
  logFormat: word('compact', 'json', 'pretty'),
  logLevel: word('off', 'error', 'warn', 'info', 'debug', 'trace'),
  serviceName: text,
  serviceVersion: text,
  gaugePollIntervalMs: ms(1),
}

const POOL: Table<Required<NativePoolOptions>> = {
  maxClients: count(1),
  maxWaiting: count(1),
  acquireTimeoutMs: ms(1),
  queryTimeoutMs: ms(1),
  idleTimeoutMs: ms(1),
  connectTimeoutMs: ms(1),
  keepAliveIntervalMs: ms(1),
  retryAttempts: count(0),
  retryBaseDelayMs: ms(1),
  retryMaxDelayMs: ms(1),
  breakerThreshold: count(1),
  breakerOpenMs: ms(1),
  pooled: word('auto', true, false),
  directUrl: text,
  applicationName: text,
  migrate: word('apply', 'verify'),
}

/** Names of all options of a runtime. */
export const RUNTIME_OPTIONS: readonly string[] = Object.keys(RUNTIME)

/** Names of all options of a provider. */
export const POOL_OPTIONS: readonly string[] = Object.keys(POOL)

/** Environment variables, by name. */
export type Environment = Readonly<Record<string, string | undefined>>

/** The environment variable of a runtime's option. */
export const runtimeVariable = (option: string): string => `HOLDFAST_${upperSnake(option)}`

/** The environment variable of a provider's option. */
export const poolVariable = (option: string): string => (option === 'directUrl' ? 'HOLDFAST_DIRECT_URL' : `HOLDFAST_POOL_${upperSnake(option)}`)

/** Checks the options of a runtime and adds those of the environment. */
export function checkRuntimeOptions(given: JsRuntimeOptions | undefined, environment: Environment = process.env): Given<NativeRuntimeOptions> {
  const { dispatcherPollInterval, ...options } = record(given, 'runtime options')
  if (dispatcherPollInterval !== undefined && options['dispatcherPollIntervalMs'] === undefined) {
    options['dispatcherPollIntervalMs'] = dispatcherPollInterval
  }
  refuseUnknown(options, RUNTIME, POOL, "PostgresProvider.connect(url, options)'s")
  // A filter given as argument is whole: the environment's list belongs to the environment's word.
  const own = options['workerTagFilter'] === undefined ? environment : { ...environment, HOLDFAST_WORKER_TAG_FILTER_TAGS: undefined }
  const checked = checkAll(options, RUNTIME, runtimeVariable, own)
  const { workerTagFilter, workerTagFilterTags, ...others } = checked.options
  const all = { ...others, ...checkTagFilter(workerTagFilter, workerTagFilterTags) }
  return { options: all as NativeRuntimeOptions, sources: checked.sources }
}

/** Checks the options of a provider and adds those of the environment. */
export function checkPoolOptions(given: JsPoolOptions | undefined, environment: Environment = process.env): Given<NativePoolOptions> {
  const options = record(given, 'pool options')
  refuseUnknown(options, POOL, RUNTIME, "new Runtime(provider, options)'s")
  const checked = checkAll(options, POOL, poolVariable, environment)
  if (checked.options['pooled'] !== undefined) checked.options['pooled'] = String(checked.options['pooled'])
  return checked as Given<NativePoolOptions>
}

type Values = Record<string, unknown>
type Kinds = Readonly<Record<string, Kind>>

function record(given: unknown, what: string): Values {
  if (given === undefined || given === null) return {}
  if (typeof given !== 'object' || Array.isArray(given)) throw invalid(what, given, 'an object')
  return { ...given }
}

function refuseUnknown(given: Values, table: Kinds, other: Kinds, others: string): void {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(table, name)) continue
    const near = nearest(name, Object.keys(table))
    const hint = Object.hasOwn(other, name) ? `; it is one of ${others}` : near === undefined ? '' : `; did you mean '${near}'?`
    throw new HoldfastError(`unknown option '${name}'${hint}`, { code: 'INVALID_OPTION' })
  }
}

function checkAll(given: Values, table: Kinds, variable: (option: string) => string, environment: Environment): Given<Values> {
  const options: Values = {}
  const sources = new Map<string, OptionSource>()
  for (const [name, kind] of Object.entries(table)) {
    const argument = given[name]
    if (argument !== undefined && argument !== null) {
      options[name] = check(name, argument, kind)
      sources.set(name, 'argument')
      continue
    }
    const text = environment[variable(name)]?.trim()
    if (text === undefined || text === '') continue
    options[name] = naming(variable(name), () => check(name, fromText(name, text, kind), kind))
    sources.set(name, 'environment')
  }
  return { options, sources }
}

/** Adds the name of the environment variable to what is wrong with it. */
function naming<T>(variable: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    throw fromVariable(error, variable)
  }
}

/** The same error with the environment variable that is to blame. */
export function fromVariable(error: unknown, variable: string): unknown {
  if (!(error instanceof HoldfastError)) return error
  return new HoldfastError(`${error.message} (from ${variable})`, { code: error.code })
}

/** The value that an environment variable's text stands for. */
function fromText(name: string, text: string, kind: Kind): unknown {
  switch (kind.is) {
    case 'word':
      return text === 'true' ? true : text === 'false' ? false : text
    case 'joint':
      return kind.read(text)
    case 'versions':
      return parsed(name, text)
    case 'text':
      return text
    default:
      return /^[-+.\d]/.test(text) && !Number.isNaN(Number(text)) ? Number(text) : text
  }
}

function parsed(name: string, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw invalid(name, text, 'an object written as JSON')
  }
}

function check(name: string, value: unknown, kind: Kind): unknown {
  switch (kind.is) {
    case 'count':
      return checkNumber(name, value, value, kind.min, kind.max, 'a whole number')
    case 'ms':
      return checkNumber(name, value, toMs(value), kind.min, kind.max, "a whole number of ms, or a text such as '30s'")
    case 'text':
      return checkText(name, value, 'a non-empty string')
    case 'joint':
      return value
    case 'versions':
      return checkVersions(name, value)
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

function checkText(name: string, value: unknown, rule: string): string {
  if (typeof value !== 'string' || value === '' || value.includes('\0') || !value.isWellFormed()) throw invalid(name, value, rule)
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

function checkVersions(name: string, value: unknown): ReplayVersionRange {
  const rule = "an object such as { min: '0.1.0', max: '1.2.0' }"
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalid(name, value, rule)
  for (const [end, version] of Object.entries(value)) {
    if (end !== 'min' && end !== 'max') throw invalid(name, `an object with '${end}'`, rule)
    if (typeof version !== 'string' || !/^\d{1,9}\.\d{1,9}\.\d{1,9}$/.test(version)) throw invalid(`${name}.${end}`, version, "a version such as '1.2.0'")
  }
  return value as ReplayVersionRange
}

function upperSnake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()
}
