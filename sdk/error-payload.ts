/**
 * Error payloads: how a thrown value travels as JSON and comes back as an error.
 *
 * Anything can be thrown, also a string, `undefined` or an object whose getters throw; writing it never throws. Text,
 * fields and the cause chain are bounded, so that an error can always be stored. A rebuilt error has the stack of the
 * original, never one of its own: replay must see the same text as the live run.
 */
import { ActivityFailedError, HoldfastError, InstanceExistsError, OrchestrationFailedError, errorOfCode } from './errors.js'
import { encode } from './payload.js'

/** An error as JSON. */
export interface ErrorPayload {
  /** Class name. */
  name: string
  /** Text. */
  message: string
  /** Stack of the place where it was thrown. */
  stack?: string
  /** Word for machines. */
  code?: string
  /** Further fields of the error that JSON can hold. */
  data?: Record<string, unknown>
  /** What led to it. */
  cause?: ErrorPayload
  /** False: trying again cannot help. */
  retryable?: boolean
}

/** Longest stack kept, in UTF-16 units: about a hundred frames. */
const MAX_STACK = 8 * 1024
/** Longest message kept: far above any text meant for people, far below the payload limit. */
const MAX_MESSAGE = 64 * 1024
/** Bytes of one custom field; a larger one is left out. */
const MAX_FIELD_BYTES = 64 * 1024
/** Number of custom fields kept. */
const MAX_FIELDS = 64
/** Length of the cause chain kept. */
const MAX_CAUSES = 8

const STANDARD = new Set(['name', 'message', 'stack', 'code', 'cause', 'retryable', '__proto__', 'constructor', 'prototype'])

/** Writes a thrown value as the JSON text of an {@link ErrorPayload}. */
export function encodeError(thrown: unknown, depth = 0): string {
  const fields: string[] = []
  const put = (key: string, value: unknown): number => fields.push(`"${key}":${JSON.stringify(value)}`)
  put('name', nameOf(thrown))
  put('message', cut(messageOf(thrown), MAX_MESSAGE))
  if (isObject(thrown)) {
    const stack = read(thrown, 'stack')
    if (typeof stack === 'string' && stack !== '') put('stack', cut(stack, MAX_STACK))
    const code = read(thrown, 'code')
    if (typeof code === 'string') put('code', cut(code, MAX_MESSAGE))
    const data = encodeFields(thrown, typeof code === 'string')
    if (data !== '{}') fields.push(`"data":${data}`)
    const cause = read(thrown, 'cause')
    if (cause !== undefined && depth < MAX_CAUSES) fields.push(`"cause":${encodeError(cause, depth + 1)}`)
    const retryable = read(thrown, 'retryable')
    if (typeof retryable === 'boolean') put('retryable', retryable)
  }
  return `{${fields.join(',')}}`
}

/** A thrown value as an {@link ErrorPayload}. */
export function toErrorPayload(thrown: unknown): ErrorPayload {
  return JSON.parse(encodeError(thrown)) as ErrorPayload
}

/** The error that a payload describes. */
export function fromErrorPayload(payload: ErrorPayload): Error {
  const cause = payload.cause === undefined ? undefined : fromErrorPayload(payload.cause)
  const error = blankError(payload, cause)
  return dress(error, payload)
}

/** What an orchestration catches when an activity failed. */
export function activityError(activityName: string, payload: ErrorPayload): Error {
  if (payload.code === 'TIMEOUT' && payload.name === 'TimeoutError') return fromErrorPayload(payload)
  const error = new ActivityFailedError(payload.message, wrapping(payload, 'ACTIVITY_FAILED'))
  define(error, 'activityName', activityName, true)
  return dress(error, payload)
}

/** What is caught when a child or an awaited orchestration failed. */
export function orchestrationError(orchestrationName: string, payload: ErrorPayload): Error {
  // Without a stack it comes from the engine: the child was not started. A child that failed with this code has one.
  if (payload.code === 'INSTANCE_EXISTS' && payload.stack === undefined) {
    return dress(new InstanceExistsError(payload.message, { code: payload.code }), { ...payload, name: 'InstanceExistsError' })
  }
  const error = new OrchestrationFailedError(payload.message, wrapping(payload, 'ORCHESTRATION_FAILED'))
  define(error, 'orchestrationName', orchestrationName, true)
  return dress(error, payload)
}

/** The text shown for a failed orchestration: its stack where there is one, always with the message. */
export function errorText(payload: ErrorPayload): string {
  if (payload.code === 'CANCELLED') {
    return /^canceled(: |$)/.test(payload.message) ? payload.message : `canceled: ${payload.message}`
  }
  if (payload.stack === undefined) return payload.message
  return payload.stack.includes(payload.message) ? payload.stack : `${payload.name}: ${payload.message}\n${payload.stack}`
}

function wrapping(payload: ErrorPayload, code: string): { code: string; retryable: boolean; cause: Error } {
  return { code: payload.code ?? code, retryable: payload.retryable ?? false, cause: fromErrorPayload(payload) }
}

type ErrorClass = new (message: string, options?: ErrorOptions) => Error

const BUILT_IN: Readonly<Record<string, ErrorClass>> = { TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError }

/** Names whose errors come back as instances of this package's classes. */
const OWN = new Set([
  'HoldfastError',
  'CancelledError',
  'NondeterminismError',
  'TimeoutError',
  'SaturatedError',
  'CircuitOpenError',
  'InstanceExistsError',
])

function blankError(payload: ErrorPayload, cause: Error | undefined): Error {
  if (payload.code !== undefined && OWN.has(payload.name)) {
    const retryAfterMs = payload.data?.['retryAfterMs']
    return errorOfCode(payload.message, {
      code: payload.code,
      retryable: payload.retryable,
      retryAfterMs: typeof retryAfterMs === 'number' ? retryAfterMs : undefined,
      cause,
    })
  }
  const Class = Object.hasOwn(BUILT_IN, payload.name) ? BUILT_IN[payload.name] : undefined
  return new (Class ?? Error)(payload.message, cause === undefined ? undefined : { cause })
}

/** Gives a rebuilt error the name, code, stack and fields of the original. */
function dress<E extends Error>(error: E, payload: ErrorPayload): E {
  if (error.name !== payload.name) define(error, 'name', payload.name, false)
  define(error, 'stack', payload.stack ?? `${payload.name}: ${payload.message}`, false)
  if (payload.code !== undefined) define(error, 'code', payload.code, true)
  if (payload.retryable !== undefined) define(error, 'retryable', payload.retryable, true)
  for (const [key, value] of Object.entries(payload.data ?? {})) {
    // A numeric code travels as a field; a HoldfastError keeps its own word.
    if (key === 'code' && (payload.code !== undefined || error instanceof HoldfastError)) continue
    if ((key === 'code' || !STANDARD.has(key)) && !(key in error && error instanceof HoldfastError)) {
      define(error, key, value, true)
    }
  }
  return error
}

function define(error: Error, key: string, value: unknown, enumerable: boolean): void {
  Object.defineProperty(error, key, { value, enumerable, writable: true, configurable: true })
}

function encodeFields(thrown: object, hasCode: boolean): string {
  const fields: string[] = []
  for (const key of keysOf(thrown)) {
    if (fields.length >= MAX_FIELDS) break
    if (STANDARD.has(key) && !(key === 'code' && !hasCode)) continue
    try {
      const value = (thrown as Record<string, unknown>)[key]
      if (value === undefined || typeof value === 'function' || typeof value === 'symbol') continue
      fields.push(`${JSON.stringify(key)}:${encode(value, 'field', MAX_FIELD_BYTES)}`)
    } catch {
      // What JSON cannot hold is left out: the error itself must always be stored.
    }
  }
  return `{${fields.join(',')}}`
}

function nameOf(thrown: unknown): string {
  if (!isObject(thrown)) return 'Error'
  const name = read(thrown, 'name')
  return typeof name === 'string' && name !== '' ? cut(name, 256) : 'Error'
}

function messageOf(thrown: unknown): string {
  if (isObject(thrown)) {
    const message = read(thrown, 'message')
    if (typeof message === 'string') return message
    try {
      return encode(thrown, 'thrown value', MAX_FIELD_BYTES)
    } catch {
      // Falls through to the plain text form.
    }
  }
  try {
    return String(thrown)
  } catch {
    return 'a thrown value that cannot be shown'
  }
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

function read(thrown: object, key: string): unknown {
  try {
    return (thrown as Record<string, unknown>)[key]
  } catch {
    return undefined
  }
}

function keysOf(thrown: object): string[] {
  try {
    return Object.keys(thrown)
  } catch {
    return []
  }
}

function cut(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit)}… (${text.length - limit} more characters)`
}

