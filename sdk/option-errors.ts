/**
 * The error for an option with a bad value: its name, the value, and the rule; never a URL.
 */
import { HoldfastError } from './errors.js'

/** The error to throw. */
export function invalidOption(name: string, value: unknown, rule: string): HoldfastError {
  const shown = name.toLowerCase().includes('url') ? 'the given text' : show(value)
  return new HoldfastError(`invalid option ${name}: ${shown} is not allowed; it must be ${rule}`, { code: 'INVALID_OPTION' })
}

function show(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.slice(0, 80))
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return String(value)
}
