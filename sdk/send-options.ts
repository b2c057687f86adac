/**
 * How a message is sent: the key that makes it come once.
 */
import type { AbortOptions } from './abort.js'
import { invalidArgument } from './ids.js'

/** Options of `raiseEvent` and `enqueueEvent`, after the data. */
export interface SendOptions extends AbortOptions {
  /**
   * Of messages to one instance with the same key only the first is delivered, and every call for it resolves. Keys are
   * remembered for a day. 1 to 256 bytes. Without one each call is a message of its own, and a lost answer is dealt with
   * inside the call.
   */
  dedupKey?: string
  /** The same as `dedupKey`. */
  idempotencyKey?: string
}

const MAX_KEY_BYTES = 256

/** The key that the options name, checked. */
export function keyOf(options: SendOptions | undefined): string | undefined {
  if (options === undefined || options === null) return undefined
  if (typeof options !== 'object') throw invalidArgument(`options of a message must be an object, got ${typeof options}`)
  const { dedupKey, idempotencyKey, signal: _signal, ...others } = options
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw invalidArgument(`unknown option '${unknown}' of a message`)
  const key = dedupKey ?? idempotencyKey
  if (key === undefined || key === null) return undefined
  if (typeof key !== 'string' || key === '' || key.includes('\0') || !key.isWellFormed() || Buffer.byteLength(key) > MAX_KEY_BYTES) {
    throw invalidArgument(`dedupKey must be a text of 1 to ${MAX_KEY_BYTES} bytes without NUL`)
  }
  return key
}
