/**
 * Values that an instance keeps under keys, as its running code sees them: what the last execution left and every change
 * since, each with the recorded time of the fact before it. No clock is read here, so a replay decides as the first run did.
 *
 * A call that would go over a limit throws and changes nothing; the code may catch it.
 */
import { HoldfastError } from '../errors.js'
import { textOf } from '../text.js'
import { MAX_KV_KEYS, MAX_KV_VALUE_BYTES, checkName, invalidArgument } from '../ids.js'

/** A value with its key and time, as it crosses. */
export interface KeptValue {
  key: string
  value: string
  at: number
}

export class Values {
  // Made when there is one: most executions keep no values.
  #byKey: Map<string, { value: string; at: number }> | undefined

  constructor(carried: readonly KeptValue[] = []) {
    for (const { key, value, at } of carried) this.set(key, value, at)
  }

  get size(): number {
    return this.#byKey?.size ?? 0
  }

  get(key: string): string | null {
    return this.#byKey?.get(key)?.value ?? null
  }

  /** Keys in code unit order, whatever the order in which they were set. */
  keys(): string[] {
    return this.#byKey === undefined ? [] : [...this.#byKey.keys()].sort()
  }

  all(): Record<string, string> {
    return Object.fromEntries(this.keys().map((key) => [key, this.get(key) ?? '']))
  }

  /** Keys whose value was set before a time. */
  olderThan(cutoffMs: number): string[] {
    return this.keys().filter((key) => (this.#byKey?.get(key)?.at ?? 0) < cutoffMs)
  }

  /** Checks a value to be kept under a checked key; gives it as text. */
  checked(key: string, value: unknown): string {
    const text = textOf(value, `KV value of key '${key}'`)
    const bytes = Buffer.byteLength(text)
    if (bytes > MAX_KV_VALUE_BYTES) throw exceeded(`KV value of key '${key}' has ${bytes} bytes, which exceeds limit (${MAX_KV_VALUE_BYTES})`)
    if (text.includes('\0') || !text.isWellFormed()) throw invalidArgument(`KV value of key '${key}' must be well-formed Unicode without NUL`)
    const count = this.size + (this.#byKey?.has(key) === true ? 0 : 1)
    if (count > MAX_KV_KEYS) throw exceeded(`KV key count (${count}) exceeds limit (${MAX_KV_KEYS})`)
    return text
  }

  set(key: string, value: string, at: number): void {
    this.#byKey ??= new Map()
    this.#byKey.set(key, { value, at })
  }

  clear(key: string): void {
    this.#byKey?.delete(key)
  }

  clearAll(): void {
    this.#byKey?.clear()
  }
}

/** Checks a key. */
export function checkKey(key: unknown): string {
  return checkName(key, 'key')
}

function exceeded(message: string): HoldfastError {
  return new HoldfastError(message, { code: 'LIMIT_EXCEEDED' })
}
