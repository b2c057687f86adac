/**
 * Calls that an AbortSignal ends: the reason given is what the caller sees, at once, and the call is dropped in the engine.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { checkWhole, invalidArgument, kindOf } from './ids.js'
import type { NativeClient } from './native.js'

/** How a call can be given up. */
export interface AbortOptions {
  /** Aborted, it ends the call, which rejects with the reason of the signal. What was sent by then may have happened. */
  signal?: AbortSignal | undefined
}

/** How long to wait, and until when. */
export interface WaitOptions extends AbortOptions {
  /** Longest wait, in ms. */
  timeoutMs?: number | undefined
}

/** The signal of options, checked. */
export function signalOf(options: AbortOptions | undefined | null): AbortSignal | undefined {
  const signal: unknown = options?.signal
  if (signal === undefined || signal === null) return undefined
  if (typeof signal !== 'object' || typeof (signal as AbortSignal).addEventListener !== 'function') {
    throw invalidArgument(`signal must be an AbortSignal, not ${kindOf(signal)}`)
  }
  return signal as AbortSignal
}

/** The signal of options, and the options without it; what is no object is left for its own check. */
export function splitSignal<T extends AbortOptions>(options: T | undefined | null): { signal: AbortSignal | undefined; others: Omit<T, 'signal'> } {
  const given = options ?? ({} as T)
  if (typeof given !== 'object') return { signal: undefined, others: given }
  const { signal: _signal, ...others } = given
  return { signal: signalOf(given), others }
}

/** The time limit and the signal of a wait: a number of ms, or options in its place or after it. */
export function waitOf(given: number | WaitOptions | undefined, more: AbortOptions | undefined, fallbackMs: number): { timeoutMs: number; signal: AbortSignal | undefined } {
  const isOptions = typeof given === 'object' && given !== null
  const timeoutMs = isOptions ? (given.timeoutMs ?? fallbackMs) : (given ?? fallbackMs)
  return { timeoutMs: checkWhole(timeoutMs, 'timeoutMs', 0), signal: signalOf(isOptions ? given : undefined) ?? signalOf(more) }
}

/** Runs a call of the engine; with a signal under a ticket, by which it is given up. */
export function abortable<T>(native: NativeClient, signal: AbortSignal | undefined, call: (ticket?: number) => Promise<T>): Promise<T> {
  return signal === undefined ? call() : underTicket(native, signal, call)
}

async function underTicket<T>(native: NativeClient, signal: AbortSignal, call: (ticket?: number) => Promise<T>): Promise<T> {
  signal.throwIfAborted()
  const ticket = native.takeTicket()
  return await new Promise<T>((resolve, reject) => {
    const stop = (): void => {
      native.giveUp(ticket)
      // Whatever the caller gave is what the caller sees.
      reject(signal.reason as Error)
    }
    const rest = (): void => signal.removeEventListener('abort', stop)
    signal.addEventListener('abort', stop, { once: true })
    call(ticket).then(resolve, reject).finally(rest)
  })
}

/** Waits so many ms, or until the signal is aborted, whose reason is thrown. */
export async function pauseFor(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await delay(ms, undefined, { signal })
  } catch (error) {
    signal?.throwIfAborted()
    throw error
  }
}
