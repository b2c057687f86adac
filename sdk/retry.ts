/**
 * Retry policies as users write them, checked and written for the engine. The engine holds the defaults; only the older
 * form of `scheduleActivityWithRetry` fills in delays, because its backoff names imply them.
 */
import { checkWhole, invalidArgument, kindOf } from './ids.js'

/**
 * When and how often a failed activity is tried again.
 *
 * @example
 * ctx.scheduleActivity('charge', order, { retry: { maxAttempts: 5, baseDelayMs: 200, nonRetryable: ['CardDeclined'] } })
 */
export interface RetryPolicy {
  /** Tries in all, the first included. Default: 3. */
  maxAttempts?: number
  /** How the delay grows. Default: `exponential` (doubles); `linear` grows by the base; `fixed` stays. */
  backoff?: 'exponential' | 'linear' | 'fixed'
  /** Delay before the second try, in ms. Default: 1000. */
  baseDelayMs?: number
  /** Longest delay, in ms. Default: 60000. */
  maxDelayMs?: number
  /** Share of each delay that is random, 0 to 100. Default: 25. */
  jitterPercent?: number
  /** Time limit of one try, in ms, from the start of its body. A try that it ends has failed and counts. Default: none. */
  timeoutMs?: number
  /** Whether a try that runs out of `timeoutMs` fails the activity at once, while its code may still be stopping. Default: false. */
  finalTimeout?: boolean
  /** Longest time between two calls of `ctx.heartbeat` within one try, in ms; a second or more. Default: none. */
  heartbeatTimeoutMs?: number
  /**
   * Time limit over all tries and delays, in ms, counted from when the activity may start first. It cuts the try that is under
   * way, and a try that could only start after it does not start. Default: none.
   */
  totalTimeoutMs?: number
  /** Names of errors that are not tried again. Default: none. */
  nonRetryable?: readonly string[]
}

/**
 * A policy in the form that `scheduleActivityWithRetry` takes: other backoff words count as `linear`, and a try that runs out
 * of `timeoutMs` fails the call at once (`finalTimeout`).
 */
export interface ActivityRetryPolicy extends Omit<RetryPolicy, 'backoff' | 'maxAttempts'> {
  /** Tries in all, the first included. */
  maxAttempts: number
  /** `exponential` (100 ms, doubling, at most 30 s), `fixed` (1 s), any other word: linear (100 ms × try, at most 30 s). */
  backoff?: string
}

const WHOLE: Readonly<Record<string, number>> = {
  maxAttempts: 1,
  baseDelayMs: 0,
  maxDelayMs: 0,
  jitterPercent: 0,
  timeoutMs: 1,
  heartbeatTimeoutMs: 1000,
  totalTimeoutMs: 1,
}

/** A checked policy as JSON text. */
export function encodeRetry(policy: RetryPolicy, what: string): string {
  if (typeof policy !== 'object' || policy === null) throw invalidArgument(`${what} must be an object, not ${kindOf(policy)}`)
  const checked: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(policy)) {
    if (value === undefined) continue
    checked[key] = checkField(key, value, `${what}: ${key}`)
  }
  return JSON.stringify(checked)
}

/** A policy with the patience for a silent body that was given beside it. */
export function withHeartbeat(policy: RetryPolicy | undefined, heartbeatTimeoutMs: number | undefined): RetryPolicy | undefined {
  return heartbeatTimeoutMs === undefined ? policy : { ...(policy ?? { maxAttempts: 1 }), heartbeatTimeoutMs }
}

/** The policy of the older form, with the delays its backoff word implies. */
export function fromActivityRetry(policy: ActivityRetryPolicy, what: string): RetryPolicy {
  if (typeof policy !== 'object' || policy === null) throw invalidArgument(`${what} must be an object, not ${kindOf(policy)}`)
  const { backoff: word, ...rest } = policy
  const backoff = word === undefined || word === 'exponential' ? 'exponential' : word === 'fixed' ? 'fixed' : 'linear'
  const baseDelayMs = backoff === 'fixed' ? 1000 : 100
  const final = rest.timeoutMs === undefined ? {} : { finalTimeout: true }
  return { baseDelayMs, maxDelayMs: 30_000, jitterPercent: 0, ...final, ...rest, backoff }
}

function checkField(key: string, value: unknown, what: string): unknown {
  const min = Object.hasOwn(WHOLE, key) ? WHOLE[key] : undefined
  if (min !== undefined) {
    const whole = checkWhole(value, what, min)
    if (key === 'jitterPercent' && whole > 100) throw invalidArgument(`${what} must be at most 100, not ${whole}`)
    if (whole > MAX_U32 && key === 'maxAttempts') throw invalidArgument(`${what} must be at most ${MAX_U32}, not ${whole}`)
    return whole
  }
  if (key === 'backoff') {
    if (value === 'exponential' || value === 'linear' || value === 'fixed') return value
    throw invalidArgument(`${what} must be 'exponential', 'linear' or 'fixed'`)
  }
  if (key === 'finalTimeout') {
    if (typeof value === 'boolean') return value
    throw invalidArgument(`${what} must be true or false`)
  }
  if (key === 'nonRetryable') {
    if (Array.isArray(value) && value.every((name) => typeof name === 'string')) return value as string[]
    throw invalidArgument(`${what} must be a list of error names`)
  }
  throw invalidArgument(`${what} is not a field of a retry policy`)
}

/** The engine counts tries in 32 bits. */
const MAX_U32 = 4_294_967_295

/** A policy with every field that decides. */
export interface CheckedRetry {
  maxAttempts: number
  backoff: 'exponential' | 'linear' | 'fixed'
  baseDelayMs: number
  maxDelayMs: number
  jitterPercent: number
  timeoutMs?: number
  finalTimeout?: boolean
  totalTimeoutMs?: number
  nonRetryable: readonly string[]
}

/** The engine's defaults, for policies that are followed in this process. */
export function checkedRetry(policy: RetryPolicy): CheckedRetry {
  const given = Object.fromEntries(Object.entries(policy).filter(([, value]) => value !== undefined))
  return { maxAttempts: 3, backoff: 'exponential', baseDelayMs: 1000, maxDelayMs: 60_000, jitterPercent: 25, nonRetryable: [], ...given }
}

/** The pause before the next try after the failed try `attempt` (from 1), or undefined to give up; as the engine decides. */
export function retryDelay(policy: CheckedRetry, attempt: number, error: unknown, elapsedMs: number): number | undefined {
  const { name, retryable } = (error ?? {}) as { name?: unknown; retryable?: unknown }
  const isFinal = policy.nonRetryable.includes(String(name)) || (policy.finalTimeout === true && name === 'TimeoutError')
  if (attempt >= policy.maxAttempts || retryable === false || isFinal) return undefined
  const factor = policy.backoff === 'fixed' ? 1 : policy.backoff === 'linear' ? attempt : 2 ** (attempt - 1)
  const pause = Math.min(policy.baseDelayMs * factor, policy.maxDelayMs)
  const share = (pause * policy.jitterPercent) / 100
  const delay = Math.floor(pause - share + share * Math.random())
  return policy.totalTimeoutMs !== undefined && elapsedMs + delay >= policy.totalTimeoutMs ? undefined : delay
}
