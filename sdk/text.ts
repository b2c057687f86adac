/**
 * Texts that an instance shows: custom status and kept values. What is given is kept as `String(value)`.
 */
import { invalidArgument, kindOf } from './ids.js'

/** The text of a value; refuses what `String` would make nothing of, such as `[object Object]`. */
export function textOf(value: unknown, what: string): string {
  const text = typeof value === 'symbol' || typeof value === 'function' || Array.isArray(value) ? undefined : String(value)
  if (text !== undefined && (typeof value !== 'object' || value === null || !text.startsWith('[object '))) return text
  throw invalidArgument(`${what} is kept as a text and is ${kindOf(value)}: give JSON.stringify(value)`)
}
