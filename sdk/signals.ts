/**
 * Signals that stop a runtime, when asked for: the first one shuts it down, the next one hurries. Nothing is installed
 * otherwise, and nothing is left behind.
 */
import { constants } from 'node:os'
import { HoldfastError } from './errors.js'

/** What a signal sets off. */
export interface Stopper {
  /** The first signal. */
  stop(): Promise<void>
  /** Every later one. */
  hurry(): void
}

/** Signals that no process can listen to. */
const UNHEARD: ReadonlySet<string> = new Set(['SIGKILL', 'SIGSTOP'])

/** Listens until the returned function is called. */
export function listenTo(signals: readonly NodeJS.Signals[], stopper: Stopper): () => void {
  const names = [...new Set(checkSignals(signals))]
  let isStopping = false
  const heard = (): void => {
    if (isStopping) {
      stopper.hurry()
      return
    }
    isStopping = true
    stopper.stop().catch((error: unknown) => {
      process.emitWarning(error instanceof Error ? error : String(error), { code: 'HOLDFAST_SHUTDOWN' })
    })
  }
  for (const name of names) process.on(name, heard)
  return () => {
    for (const name of names) process.off(name, heard)
  }
}

function checkSignals(signals: unknown): NodeJS.Signals[] {
  if (!Array.isArray(signals) || signals.length === 0) throw invalid(signals)
  for (const name of signals) {
    if (typeof name !== 'string' || !Object.hasOwn(constants.signals, name) || UNHEARD.has(name)) throw invalid(name)
  }
  return signals as NodeJS.Signals[]
}

function invalid(given: unknown): HoldfastError {
  const shown = typeof given === 'string' ? JSON.stringify(given) : String(given)
  const message = `signals must be a list of signals that a process can listen to, such as ['SIGTERM', 'SIGINT']; got ${shown}`
  return new HoldfastError(message, { code: 'INVALID_ARGUMENT' })
}
