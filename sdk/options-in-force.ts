/**
 * Options in force: what was given goes to the engine, which checks every rule and fills in its defaults; what comes back is
 * shown with the source of each value. A password in a URL is never shown.
 */
import { HoldfastError } from './errors.js'
import { type NativeBinding, binding } from './native.js'
import {
  type Given,
  type NativePoolOptions,
  type NativeRuntimeOptions,
  POOL_OPTIONS,
  RUNTIME_OPTIONS,
  checkPoolOptions,
  checkRuntimeOptions,
  fromVariable,
  poolVariable,
  runtimeVariable,
} from './option-check.js'
import type { JsPoolOptions, JsRuntimeOptions, OptionInForce, OptionSource, OptionsInForce } from './options.js'
import { type Outcome, unwrap } from './unwrap.js'

/** Options for the engine, and the same for people. */
export interface Resolved<N, J> {
  /** As they were given, for the engine. */
  given: N
  /** With every default, as the engine knows them. */
  values: N
  /** With every default and source. */
  shown: OptionsInForce<J>
}

/** The options of a runtime in force. */
export function resolveRuntimeOptions(options: JsRuntimeOptions | undefined): Resolved<NativeRuntimeOptions, JsRuntimeOptions> {
  const given = checkRuntimeOptions(options)
  const values = resolve(given, (native) => native.JsOptions.ofRuntime(given.options), runtimeVariable)
  const { workerTagFilter: mode, workerTagFilterTags: tags } = values
  const filter = mode === 'tags' || mode === 'defaultAnd' ? { [mode]: tags } : mode
  return { given: given.options, values, shown: shown(RUNTIME_OPTIONS, { ...values, workerTagFilter: filter }, given.sources) }
}

/** The options of a provider in force. */
export function resolvePoolOptions(options: JsPoolOptions | undefined): Resolved<NativePoolOptions, JsPoolOptions> {
  const given = checkPoolOptions(options)
  const values = resolve(given, (native) => native.JsOptions.ofPool(given.options), poolVariable)
  const { pooled, directUrl } = values
  const plain = pooled === 'true' ? true : pooled === 'false' ? false : pooled
  const all = { ...values, pooled: plain, directUrl: withoutSecrets(directUrl) }
  return { given: given.options, values, shown: shown(POOL_OPTIONS, all, given.sources) }
}

function resolve<N>(given: Given<N>, ask: (native: NativeBinding) => Outcome<N>, variable: (option: string) => string): N {
  try {
    return unwrap(ask(binding()))
  } catch (error) {
    const option = error instanceof HoldfastError ? /^invalid option (\w+)/.exec(error.message)?.[1] : undefined
    const isFromOutside = option !== undefined && given.sources.get(option) === 'environment'
    throw isFromOutside ? fromVariable(error, variable(option)) : error
  }
}

function shown<J>(names: readonly string[], values: object, sources: ReadonlyMap<string, OptionSource>): OptionsInForce<J> {
  const all: Record<string, OptionInForce<unknown>> = {}
  for (const name of names) {
    const value = (values as Record<string, unknown>)[name]
    all[name] = Object.freeze({ value: value ?? null, source: sources.get(name) ?? 'default' })
  }
  return Object.freeze(all) as OptionsInForce<J>
}

/** A URL without user, password and parameters. */
function withoutSecrets(url: string | undefined | null): string | undefined {
  if (url === undefined || url === null) return undefined
  const match = /^(\w+:\/\/)(?:[^/]*@)?([^/?#@]*)(\/[^?#]*)?/.exec(url)
  return match === null ? '(set)' : `${match[1]}${match[2]}${match[3] ?? ''}`
}
