/**
 * Typed definitions: a name with the types of what goes in and comes out, accepted wherever a name is.
 *
 * A definition holds no state and belongs to no runtime; the function given with it is what `register…` takes by default.
 */
import type { ActivityContext } from './activity/context.js'
import { HoldfastError } from './errors.js'
import { checkActivityName, checkName, checkVersion, kindOf } from './ids.js'
import type { OrchestrationContext } from './replay/context.js'
import { type StandardSchema, checkSchema, checkedActivity, checkedOrchestration } from './schema.js'

/** The code of an activity. It runs anywhere, may do anything, and may run more than once. */
export type ActivityFunction<I = unknown, O = unknown> = (ctx: ActivityContext, input: I) => O | PromiseLike<O>

/** The code of an orchestration: an async function, or a generator function that yields tasks. It must be deterministic. */
export type OrchestrationFunction<I = unknown, O = unknown> = (
  ctx: OrchestrationContext,
  input: I,
) => PromiseLike<O> | Generator<unknown, O, unknown>

/** An activity with its types. */
export interface ActivityDefinition<I = unknown, O = unknown> {
  readonly type: 'activity'
  readonly name: string
  /** Schema of the input, if it was given. */
  readonly input?: StandardSchema | undefined
  /** Schema of the result, if it was given. */
  readonly output?: StandardSchema | undefined
  readonly fn: ActivityFunction<I, O>
}

/** An orchestration with its types. */
export interface OrchestrationDefinition<I = unknown, O = unknown> {
  readonly type: 'orchestration'
  readonly name: string
  readonly version: string | undefined
  /** Schema of the input, if it was given. */
  readonly input?: StandardSchema | undefined
  /** Schema of the output, if it was given. */
  readonly output?: StandardSchema | undefined
  readonly fn: OrchestrationFunction<I, O>
}

/** A one-shot event or queue with the type of its data. */
export interface EventDefinition<T = unknown> {
  readonly type: 'event'
  readonly name: string
  /** Schema of the data, if it was given. */
  readonly schema?: StandardSchema | undefined
  /** Only a type; never present at run time. */
  readonly data?: T
}

/** The arguments after a definition: the input may be left out where its type allows undefined. */
export type InputArguments<I, Rest extends unknown[] = []> = undefined extends I ? [input?: I, ...rest: Rest] : [input: I, ...rest: Rest]

/**
 * Defines an activity. With the schema `input` a start with another input is refused, and the code gets what the schema
 * makes of it; with `output` so is a result. Neither is tried again.
 *
 * @example
 * const charge = defineActivity('charge', async (ctx, order: Order): Promise<Receipt> => pay(order, ctx.idempotencyKey))
 */
export function defineActivity<I = undefined, O = unknown>(
  name: string,
  fn: ActivityFunction<I, O>,
  options?: { input?: undefined; output?: StandardSchema<O> },
): ActivityDefinition<I, O>
export function defineActivity<W, I, O = unknown>(
  name: string,
  fn: ActivityFunction<I, O>,
  options: { input: StandardSchema<W, I>; output?: StandardSchema<O> },
): ActivityDefinition<W, O>
export function defineActivity<I, O>(
  name: string,
  fn: ActivityFunction<I, O>,
  options: { input?: StandardSchema | undefined; output?: StandardSchema | undefined } = {},
): ActivityDefinition<I, O> {
  checkActivityName(name, 'activity name')
  checkFunction(fn, `activity '${name}'`)
  const { input, output } = options
  checkSchema(input, `input schema of activity '${name}'`)
  checkSchema(output, `output schema of activity '${name}'`)
  const checked = checkedActivity(fn, options, name) as ActivityFunction<I, O>
  return Object.freeze({ type: 'activity', name, fn: checked, input, output })
}

/**
 * Defines an orchestration. Without a version it is registered as 1.0.0. Its schemas work as those of an activity and must
 * answer at once.
 *
 * @example
 * const checkout = defineOrchestration('checkout', async (ctx, order: Order) => await ctx.scheduleActivity(charge, order))
 */
export function defineOrchestration<I = undefined, O = unknown>(
  name: string,
  fn: OrchestrationFunction<I, O>,
  options?: { version?: string; input?: undefined; output?: StandardSchema<O> },
): OrchestrationDefinition<I, O>
export function defineOrchestration<W, I, O = unknown>(
  name: string,
  fn: OrchestrationFunction<I, O>,
  options: { version?: string; input: StandardSchema<W, I>; output?: StandardSchema<O> },
): OrchestrationDefinition<W, O>
export function defineOrchestration<I, O>(
  name: string,
  fn: OrchestrationFunction<I, O>,
  options: { version?: string; input?: StandardSchema | undefined; output?: StandardSchema | undefined } = {},
): OrchestrationDefinition<I, O> {
  checkName(name, 'orchestration name')
  checkFunction(fn, `orchestration '${name}'`)
  const version = options.version === undefined ? undefined : checkVersion(options.version)
  const { input, output } = options
  checkSchema(input, `input schema of orchestration '${name}'`)
  checkSchema(output, `output schema of orchestration '${name}'`)
  const checked = checkedOrchestration(fn, options, name) as OrchestrationFunction<I, O>
  return Object.freeze({ type: 'orchestration', name, version, fn: checked, input, output })
}

/**
 * Defines a one-shot event or a queue by the type of its data, or by a schema, which refuses other data when it is sent.
 *
 * @example
 * const approved = defineEvent<{ by: string }>('approved')
 */
export function defineEvent<T = unknown>(name: string, options: { schema?: StandardSchema<T> } = {}): EventDefinition<T> {
  checkName(name, 'event name')
  checkSchema(options.schema, `schema of event '${name}'`)
  return Object.freeze({ type: 'event', name, schema: options.schema })
}

/** The name in a name or definition; `what` names the argument in the error. */
export function nameOf(value: unknown, kind: 'activity' | 'orchestration' | 'event', what: string): string {
  if (typeof value === 'object' && value !== null && 'type' in value && 'name' in value) {
    if (value.type !== kind) {
      const message = `${what} must be a name or the definition of an ${kind}, not the definition of an ${String(value.type)}`
      throw new HoldfastError(message, { code: 'INVALID_ARGUMENT' })
    }
    return checkName(value.name, what)
  }
  return kind === 'activity' ? checkActivityName(value, what) : checkName(value, what)
}

/** Refuses what is not a function. */
export function checkFunction(value: unknown, what: string): void {
  if (typeof value === 'function') return
  throw new HoldfastError(`${what} needs a function, not ${kindOf(value)}`, { code: 'INVALID_ARGUMENT' })
}
