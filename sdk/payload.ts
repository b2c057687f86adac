/**
 * Payloads: user values as JSON text.
 *
 * The text is exactly what `JSON.stringify` gives, with all that goes with it: a `Date` becomes a string, a `Map` or `Set`
 * becomes `{}`, functions, symbols and `undefined` vanish from objects and are `null` in arrays, and `undefined` alone is
 * `null`. Getters and `toJSON` run once.
 *
 * Refused here, at the call that hands the value over, with the argument and the path of the bad value: BigInt, numbers that
 * are not finite, cycles, getters or `toJSON` that throw, tasks of an orchestration that were not awaited, more than 1000
 * levels, and more bytes than the limit. Never parses or rewrites text that is already encoded.
 */
import { HoldfastError } from './errors.js'

/** Longest payload in bytes of UTF-8 unless the runtime's `payloadByteLimit` says otherwise. */
export const DEFAULT_PAYLOAD_BYTES = 64 * 1024 * 1024

/** Marks the tasks of any copy of this package. */
export const TASK = Symbol.for('holdfast.task')

/** Depth up to which the quick look goes; deeper (or circular) values take the careful way. */
const QUICK_DEPTH = 64

/** Depth past which a value is refused: `JSON.stringify` recurses, and its stack is bounded. */
const MAX_DEPTH = 1000

/** Writes `value` as JSON text; `what` names the argument in the error. */
export function encode(value: unknown, what: string, limit: number = DEFAULT_PAYLOAD_BYTES): string {
  const text = isPlainToTheEnd(value) ? JSON.stringify(value) : JSON.stringify(snapshot(value, what))
  const json = text ?? 'null'
  // A UTF-16 unit takes at most three bytes, so short texts need no count.
  if (json.length * 3 > limit) {
    const bytes = Buffer.byteLength(json)
    if (bytes > limit) throw refused(what, '$', `is ${bytes} bytes long as JSON, more than the limit of ${limit}`)
  }
  return json
}

/** Reads JSON text. */
export function decode(text: string): unknown {
  return JSON.parse(text)
}

/** The path of the first task in plain arrays and objects, if there is one. Looks as deep as the quick look. */
export function taskIn(value: unknown, path = '$', depth = 0): string | undefined {
  if (typeof value !== 'object' || value === null || depth > QUICK_DEPTH) return undefined
  if (TASK in value) return path
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Array.prototype && prototype !== Object.prototype && prototype !== null) return undefined
  for (const key of Object.keys(value)) {
    const property = Object.getOwnPropertyDescriptor(value, key)
    const found = taskIn(property?.value, path + segment(key, Array.isArray(value)), depth + 1)
    if (found !== undefined) return found
  }
  return undefined
}

function segment(key: string, isIndex: boolean): string {
  if (isIndex) return `[${key}]`
  return /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`
}

/** The quick look. A proxy may throw at any look at it; the careful way then says where. */
function isPlainToTheEnd(value: unknown): boolean {
  try {
    return isPlain(value, 0)
  } catch {
    return false
  }
}

/** Gives the getter of a property and makes no object for it, as a descriptor would be: this looks at every payload. */
const getterOf = (Object.prototype as { __lookupGetter__?: (this: object, key: PropertyKey) => unknown }).__lookupGetter__

/** Whether reading a property runs no code of the user. */
function isData(holder: object, key: PropertyKey): boolean {
  return getterOf !== undefined && getterOf.call(holder, key) === undefined
}

/** True for a value made only of data properties, finite numbers, strings, booleans, null and undefined. */
function isPlain(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'undefined':
      return true
    case 'number':
      return Number.isFinite(value)
    case 'object':
      return value === null || (depth < QUICK_DEPTH && isPlainObject(value, depth))
    default:
      return false
  }
}

function isPlainObject(value: object, depth: number): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Array.prototype) {
    const list = value as readonly unknown[]
    if ('toJSON' in value) return false
    for (let i = 0; i < list.length; i++) {
      if (!isData(list, i)) return false
      const item = list[i]
      if ((item === undefined && !(i in list)) || !isPlain(item, depth + 1)) return false
    }
    return true
  }
  if ((prototype !== Object.prototype && prototype !== null) || 'toJSON' in value) return false
  // With what is inherited, which is nothing unless somebody added to the prototype of all objects.
  for (const key in value) {
    if (!isData(value, key) || !isPlain((value as Record<string, unknown>)[key], depth + 1)) return false
  }
  return true
}

/** A plain copy that `JSON.stringify` writes as it would have written `value`; finds the first bad value. */
function snapshot(value: unknown, what: string): unknown {
  const root = { '': value }
  return copy(root, '', what, [], [])
}

function copy(holder: object, key: string, what: string, path: string[], parents: object[]): unknown {
  const value = written(holder, key, what, path)
  switch (typeof value) {
    case 'number':
      if (!Number.isFinite(value)) throw refused(what, at(path), `is ${value}, which JSON cannot hold`)
      return value
    case 'bigint':
      throw refused(what, at(path), 'is a BigInt, which JSON cannot hold; pass it as a string')
    case 'function':
    case 'symbol':
      return undefined
    case 'object':
      if (value === null) return null
      if (looked(what, path, () => TASK in value)) throw refused(what, at(path), 'is a task; await or yield it and pass on its result')
      return copyObject(value, what, path, parents)
    default:
      return value
  }
}

function copyObject(value: object, what: string, path: string[], parents: object[]): unknown {
  if (parents.includes(value)) throw refused(what, at(path), 'is circular: it holds itself')
  if (parents.length >= MAX_DEPTH) throw refused(what, at(path), `is nested more than ${MAX_DEPTH} levels deep`)
  parents.push(value)
  let result: unknown
  if (looked(what, path, () => Array.isArray(value))) {
    const list: unknown[] = []
    const length = looked(what, path, () => (value as unknown[]).length)
    for (let i = 0; i < length; i++) {
      path.push(`[${i}]`)
      list.push(copy(value, String(i), what, path, parents))
      path.pop()
    }
    result = list
  } else {
    // Without a prototype, so that a key named __proto__ is an ordinary key.
    const fields = Object.create(null) as Record<string, unknown>
    for (const key of looked(what, path, () => Object.keys(value))) {
      path.push(segment(key, false))
      const field = copy(value, key, what, path, parents)
      if (field !== undefined) fields[key] = field
      path.pop()
    }
    result = fields
  }
  parents.pop()
  return result
}

/** What `JSON.stringify` writes for a property: after its getter, its `toJSON` and the unboxing of wrapper objects. */
function written(holder: object, key: string, what: string, path: string[]): unknown {
  return looked(what, path, () => {
    let value = (holder as Record<string, unknown>)[key]
    if ((typeof value === 'object' && value !== null) || typeof value === 'bigint') {
      const toJSON = (value as { toJSON?: unknown }).toJSON
      if (typeof toJSON === 'function') value = toJSON.call(value, key) as unknown
    }
    if (value instanceof Number) return Number(value)
    if (value instanceof String) return String(value)
    if (value instanceof Boolean) return value.valueOf()
    if (value instanceof BigInt) return value.valueOf()
    return value
  })
}

/** A look at a value of the user, which may run code of the user. */
function looked<T>(what: string, path: string[], look: () => T): T {
  try {
    return look()
  } catch (cause) {
    throw refused(what, at(path), `threw while it was read: ${describe(cause)}`, cause)
  }
}

function describe(cause: unknown): string {
  try {
    return cause instanceof Error ? cause.message : String(cause)
  } catch {
    return 'an error that cannot be shown'
  }
}

function at(path: readonly string[]): string {
  return `$${path.join('')}`
}

function refused(what: string, where: string, why: string, cause?: unknown): HoldfastError {
  const subject = where === '$' ? what : `${what}: the value at ${where}`
  return new HoldfastError(`${subject} ${why}`, { code: 'INVALID_PAYLOAD', retryable: false, cause })
}
