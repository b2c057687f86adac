/**
 * Errors that users can catch. Branch on `code`; the classes exist where code branches on them with `instanceof`.
 *
 * `instanceof` works between the CommonJS and the ESM copy of this package: it looks at a brand, not at the prototype.
 */

/** What a {@link HoldfastError} is made from. */
export interface HoldfastErrorOptions {
  /** Stable word for machines. */
  code: string
  /** Whether the same call may succeed later. Default: false. */
  retryable?: boolean | undefined
  /** How long to wait before trying again, in ms. */
  retryAfterMs?: number | undefined
  /** What led to it. */
  cause?: unknown
}

const BRAND = Symbol.for('holdfast.error')

function isBranded(value: unknown, brand: string): boolean {
  if (typeof value !== 'object' || value === null || !(BRAND in value)) return false
  const brands = (value as Record<typeof BRAND, unknown>)[BRAND]
  return Array.isArray(brands) && brands.includes(brand)
}

/** Gives a class its name, its brand and an `instanceof` that goes by the brand. */
function brand(type: { readonly prototype: HoldfastError }, name: string): void {
  const inherited = (type.prototype as unknown as Record<symbol, readonly string[] | undefined>)[BRAND] ?? []
  Object.defineProperty(type.prototype, BRAND, { value: [...inherited, name] })
  Object.defineProperty(type.prototype, 'name', { value: name, writable: true, configurable: true })
  Object.defineProperty(type, Symbol.hasInstance, { value: (value: unknown) => isBranded(value, name) })
}

/**
 * Base of every error of this package.
 *
 * @example
 * try { await client.start('checkout', order, { id: 'order-17' }) }
 * catch (error) { if (error instanceof HoldfastError && error.retryable) await later() }
 */
export class HoldfastError extends Error {
  /** Stable word for machines, for example `INVALID_PAYLOAD`. */
  readonly code: string
  /** Whether the same call may succeed later. */
  readonly retryable: boolean
  /** How long to wait before trying again, in ms, where that is known. */
  declare readonly retryAfterMs?: number

  constructor(message: string, options: HoldfastErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = options.code
    this.retryable = options.retryable ?? false
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs
  }
}

/** An activity failed for good. It carries the name, message, code and fields of the activity's own error, which is its `cause`. */
export class ActivityFailedError extends HoldfastError {
  /** Name of the activity. */
  declare readonly activityName: string
}

/** An orchestration failed. It carries the name, message, code and fields of the error that it threw, which is its `cause`. */
export class OrchestrationFailedError extends HoldfastError {
  /** Name of the orchestration. */
  declare readonly orchestrationName: string
}

/** The work was cancelled. */
export class CancelledError extends HoldfastError {}

/** The code of an orchestration does not fit its recorded history. */
export class NondeterminismError extends HoldfastError {}

/** A time limit passed. */
export class TimeoutError extends HoldfastError {}

/** Too many callers wait for a connection; `retryAfterMs` says when to come again. */
export class SaturatedError extends HoldfastError {}

/** The database was unreachable several times in a row; calls fail at once until a trial succeeds. */
export class CircuitOpenError extends HoldfastError {}

/** The database has no connection left to give; `retryAfterMs` says when to come again. */
export class CapacityError extends HoldfastError {}

/** It has none left for the connection that listens beside the pool; see `provider.probeDirectSession()`. */
export class DirectSessionCapacityError extends CapacityError {}

/** The URL leads to a provider's direct port where its pooled one must be used; the message names that port. */
export class DirectDatabaseUrlError extends HoldfastError {}

/** An instance with this id exists and was started with another name or input. */
export class InstanceExistsError extends HoldfastError {}

brand(HoldfastError, 'HoldfastError')
brand(ActivityFailedError, 'ActivityFailedError')
brand(OrchestrationFailedError, 'OrchestrationFailedError')
brand(CancelledError, 'CancelledError')
brand(NondeterminismError, 'NondeterminismError')
brand(TimeoutError, 'TimeoutError')
brand(SaturatedError, 'SaturatedError')
brand(CircuitOpenError, 'CircuitOpenError')
brand(CapacityError, 'CapacityError')
brand(DirectSessionCapacityError, 'DirectSessionCapacityError')
brand(DirectDatabaseUrlError, 'DirectDatabaseUrlError')
brand(InstanceExistsError, 'InstanceExistsError')

/** The class that users branch on for a code; {@link HoldfastError} itself for all others. */
const CLASS_OF_CODE: Readonly<Record<string, new (message: string, options: HoldfastErrorOptions) => HoldfastError>> = {
  CANCELLED: CancelledError,
  NONDETERMINISM: NondeterminismError,
  TIMEOUT: TimeoutError,
  SATURATED: SaturatedError,
  CIRCUIT_OPEN: CircuitOpenError,
  CAPACITY: CapacityError,
  DIRECT_SESSION_CAPACITY: DirectSessionCapacityError,
  DIRECT_DATABASE_URL: DirectDatabaseUrlError,
  INSTANCE_EXISTS: InstanceExistsError,
}

/** Makes the error of a code, of the class that users branch on. */
export function errorOfCode(message: string, options: HoldfastErrorOptions): HoldfastError {
  const Class = Object.hasOwn(CLASS_OF_CODE, options.code) ? CLASS_OF_CODE[options.code] : undefined
  return new (Class ?? HoldfastError)(message, options)
}

/** Runs the checks of one item of a list: what they refuse is said with its index. */
export async function ofItem<T>(index: number, check: () => Promise<T>): Promise<T> {
  try {
    return await check()
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error
    throw errorOfCode(`item ${index}: ${error.message}`, { code: error.code, retryable: error.retryable, cause: error })
  }
}
