/**
 * Outcomes of native calls: a value, or a failure that becomes an error of the right class with a stack of its caller.
 */
import { errorOfCode } from './errors.js'

/** Why a native call failed. */
export interface Failure {
  code: string
  message: string
  retryable: boolean
  retryAfterMs?: number | null
}

/** What a native call resolves to. */
export interface Outcome<T> {
  value?: T | null
  failure?: Failure | null
}

/** The value of an outcome, or its failure thrown. */
export function unwrap<T>(outcome: Outcome<T>): T {
  const { failure } = outcome
  if (failure !== undefined && failure !== null) {
    const { code, message, retryable, retryAfterMs } = failure
    throw errorOfCode(message, { code, retryable, retryAfterMs: retryAfterMs ?? undefined })
  }
  return outcome.value as T
}
