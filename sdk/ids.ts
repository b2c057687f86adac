/**
 * Names and instance ids: checked where they enter, before anything is sent. An error names the argument and the rule.
 */
import { HoldfastError } from './errors.js'

/** Longest name or instance id in bytes of UTF-8: fits an index entry with room for the other columns of its key. */
export const MAX_NAME_BYTES = 512

/** Longest id of an instance that is addressed: automatic ids of children are longer than those of their parents. */
const MAX_ADDRESS_BYTES = 1024

/** Longest tag in bytes of UTF-8. */
export const MAX_TAG_NAME_BYTES = 256

/** Most tags of a `workerTagFilter`. */
export const MAX_WORKER_TAGS = 5

/** Most keys of an instance's key-value store. */
export const MAX_KV_KEYS = 150

/** Longest value of an instance's key-value store in bytes of UTF-8. */
export const MAX_KV_VALUE_BYTES = 64 * 1024

/** Longest custom status in bytes of UTF-8. */
export const MAX_STATUS_BYTES = 256 * 1024

/** Marker of automatic child ids. */
const CHILD_MARKER = 'sub::'

/** Prefix of activity names that the engine keeps for itself. */
const RESERVED_ACTIVITY = '__holdfast'

/** An error about an argument. */
export function invalidArgument(message: string): HoldfastError {
  return new HoldfastError(message, { code: 'INVALID_ARGUMENT' })
}

/** Checks a name: of an orchestration, an activity, an event, a queue or a session. `what` names the argument. */
export function checkName(value: unknown, what: string, limit: number = MAX_NAME_BYTES): string {
  if (typeof value !== 'string') throw invalidArgument(`${what} must be a string, not ${kindOf(value)}`)
  if (value === '') throw invalidArgument(`${what} must not be empty`)
  const bytes = Buffer.byteLength(value)
  if (bytes > limit) throw invalidArgument(`${what} is ${bytes} bytes long, more than the limit of ${limit}`)
  if (value.includes('\0')) throw invalidArgument(`${what} must not hold a NUL character`)
  if (!value.isWellFormed()) throw invalidArgument(`${what} must be well-formed Unicode: it holds a lone surrogate`)
  return value
}

/** Checks an activity name: a name that the engine does not keep for itself. */
export function checkActivityName(value: unknown, what: string): string {
  const name = checkName(value, what)
  if (name.startsWith(RESERVED_ACTIVITY)) {
    throw invalidArgument(`${what} '${name}' starts with '${RESERVED_ACTIVITY}', which is reserved`)
  }
  return name
}

/** Checks the id of an instance that is addressed: any id, also that of a child. */
export function checkInstanceId(value: unknown, what = 'instance id'): string {
  return checkName(value, what, MAX_ADDRESS_BYTES)
}

/** Checks the id of an instance to be started: it must not look like an automatic child id. */
export function checkNewInstanceId(value: unknown, what = 'instance id'): string {
  const id = checkName(value, what)
  if (id.startsWith(CHILD_MARKER) || id.includes(`::${CHILD_MARKER}`)) throw reservedId(id, what)
  return id
}

/** Checks the explicit id of a child: it may hold its parent's id, but not start with the marker. */
export function checkChildId(value: unknown, what = 'instance id'): string {
  const id = checkName(value, what)
  if (id.startsWith(CHILD_MARKER)) throw reservedId(id, what)
  return id
}

/** Checks an exact version: three numbers with dots. The engine orders them as numbers, so there is no pre-release. */
export function checkVersion(value: unknown, what = 'version'): string {
  const version = checkName(value, what)
  if (!/^(0|[1-9]\d{0,14})(\.(0|[1-9]\d{0,14})){2}$/.test(version)) {
    throw invalidArgument(`${what} '${version}' is not a semantic version of three numbers such as 1.2.0`)
  }
  return version
}

/** Checks a whole number of at least `min`. */
export function checkWhole(value: unknown, what: string, min: number): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < min) {
    const shown = typeof value === 'number' ? String(value) : kindOf(value)
    throw invalidArgument(`${what} must be a whole number of at least ${min}, not ${shown}`)
  }
  return value
}

/** How a value of the wrong type is named in an error. */
export function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (value === undefined) return 'undefined'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function reservedId(id: string, what: string): HoldfastError {
  return invalidArgument(`Invalid input: ${what} '${id}' uses the reserved sub-orchestration marker 'sub::'`)
}
