/**
 * Schemas on definitions: anything with the Standard Schema interface (Zod, Valibot, ArkType and others have it).
 *
 * A value is checked where it enters and once more where it is used, because not everybody who sends goes through this
 * package. What crosses is the value as it was given; the handler gets what the schema makes of it.
 */
import { HoldfastError } from './errors.js'

/** What a schema says about a value. */
export type StandardResult<T> =
  | { readonly value: T; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] }

/** One fault of a value. */
export interface StandardIssue {
  readonly message: string
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined
}

/** The Standard Schema interface, version 1: `I` is what may be given, `O` what the schema makes of it. */
export interface StandardSchema<I = unknown, O = I> {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    readonly validate: (value: unknown) => StandardResult<O> | Promise<StandardResult<O>>
    readonly types?: { readonly input: I; readonly output: O } | undefined
  }
}

/** Schemas of what goes in and comes out. */
export interface Schemas {
  readonly input?: StandardSchema | undefined
  readonly output?: StandardSchema | undefined
}

/** Longest list of faults in an error. */
const MAX_ISSUES = 10

/** Refuses what is no schema. */
export function checkSchema(value: unknown, what: string): void {
  if (value === undefined || (isSchemaLike(value) && typeof value['~standard']?.validate === 'function')) return
  throw new HoldfastError(`${what} must be a schema with the Standard Schema interface`, { code: 'INVALID_ARGUMENT' })
}

/** What the schema makes of a value; rejects when it refuses it. */
export async function validated(schema: StandardSchema | undefined, value: unknown, what: string): Promise<unknown> {
  return schema === undefined ? value : valueOf(await schema['~standard'].validate(value), what)
}

/** The same at once, for code that must not wait. */
export function validatedNow(schema: StandardSchema | undefined, value: unknown, what: string): unknown {
  if (schema === undefined) return value
  const result = schema['~standard'].validate(value)
  if (!(result instanceof Promise)) return valueOf(result, what)
  result.catch(() => {})
  const message = `the schema of ${what} answers later; an orchestration needs one that answers at once`
  throw new HoldfastError(message, { code: 'INVALID_SCHEMA' })
}

function valueOf(result: StandardResult<unknown>, what: string): unknown {
  if (result.issues === undefined) return result.value
  const faults = result.issues.slice(0, MAX_ISSUES).map(({ message, path }) => {
    const keys = (path ?? []).map((step) => String(typeof step === 'object' ? step.key : step))
    return keys.length === 0 ? message : `${keys.join('.')}: ${message}`
  })
  const more = result.issues.length > MAX_ISSUES ? ` and ${result.issues.length - MAX_ISSUES} more` : ''
  throw new HoldfastError(`${what} does not fit its schema: ${faults.join('; ')}${more}`, { code: 'SCHEMA_REFUSED' })
}

function isSchemaLike(value: unknown): value is { '~standard'?: { validate?: unknown } } {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** An activity's code behind its schemas. */
export function checkedActivity<C, R>(fn: (ctx: C, input: never) => R, { input, output }: Schemas, name: string): (ctx: C, given: unknown) => R | Promise<unknown> {
  if (input === undefined && output === undefined) return fn as (ctx: C, given: unknown) => R
  return async (ctx, given) => {
    const result: unknown = await fn(ctx, (await validated(input, given, `input of activity '${name}'`)) as never)
    return await validated(output, result, `result of activity '${name}'`)
  }
}

/** An orchestration's code behind its schemas: a generator stays a generator. */
export function checkedOrchestration<C>(fn: (ctx: C, input: never) => unknown, { input, output }: Schemas, name: string): (ctx: C, given: unknown) => unknown {
  if (input === undefined && output === undefined) return fn as (ctx: C, given: unknown) => unknown
  const outputOf = (value: unknown): unknown => validatedNow(output, value, `output of orchestration '${name}'`)
  return (ctx, given) => {
    const result = fn(ctx, validatedNow(input, given, `input of orchestration '${name}'`) as never)
    if (output === undefined) return result
    if (isGenerator(result)) return through(result, outputOf)
    return Promise.resolve(result).then(outputOf)
  }
}

function* through(code: Generator<unknown, unknown, unknown>, outputOf: (value: unknown) => unknown): Generator<unknown, unknown, unknown> {
  return outputOf(yield* code)
}

function isGenerator(value: unknown): value is Generator<unknown, unknown, unknown> {
  return typeof value === 'object' && value !== null && Symbol.iterator in value && typeof (value as { next?: unknown }).next === 'function'
}
