/**
 * The order to stop an activity. Its signal is made when somebody asks for it: most bodies never do.
 */
import { type HoldfastError, errorOfCode } from '../errors.js'

/** Why a running activity is to stop. */
export type AbortReason = 'cancelled' | 'lost' | 'shutdown' | 'timeout'

const REASONS: Readonly<Record<AbortReason, readonly [code: string, message: string]>> = {
  cancelled: ['CANCELLED', 'the activity was cancelled'],
  lost: ['LEASE_LOST', 'another node has taken the activity over'],
  shutdown: ['SHUTDOWN', 'the runtime shuts down'],
  timeout: ['TIMEOUT', 'the time limit of the activity passed'],
}

/** Whether one activity is to stop, and why. */
export class Stop {
  #reason: AbortReason | undefined
  #controller: AbortController | undefined

  /** Why it is to stop; the first order counts. */
  get reason(): AbortReason | undefined {
    return this.#reason
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#reason !== undefined) this.#abort(this.#reason)
    return this.#controller.signal
  }

  /** Gives the order; later ones change nothing. */
  order(reason: AbortReason): void {
    if (this.#reason !== undefined) return
    this.#reason = reason
    this.#abort(reason)
  }

  #abort(reason: AbortReason): void {
    if (this.#controller?.signal.aborted === false) this.#controller.abort(abortError(reason))
  }
}

function abortError(reason: AbortReason): HoldfastError {
  const [code, message] = REASONS[reason]
  return errorOfCode(message, { code, retryable: reason !== 'cancelled' })
}
