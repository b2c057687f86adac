/**
 * The native addon as this package sees it, typed by hand. Loaded at the first use, never at import.
 *
 * Texts cross as JSON; failures come as values, because a native promise cannot reject with an error class of ours.
 */
import { HoldfastError } from './errors.js'
import { loadBinding } from './load-binding.cjs'
import type { NativePoolOptions, NativeRuntimeOptions } from './option-check.js'
import type { NativeLogLine } from './trace.js'
import type { Outcome } from './unwrap.js'

/** An event as the addon tells it; its own fields lie beside the common ones. */
export interface EventRecord {
  name: string
  level: 'info' | 'warn' | 'error'
  message: string
  at: number
  count: number
  [field: string]: unknown
}

/** A connected pool with its schema. */
export interface NativeProvider {
  close(): Promise<Outcome<null>>
  warm(): Promise<Outcome<null>>
  probeDirectSession(): Promise<Outcome<null>>
  /** Connections opened from here on show it. */
  setPassword(password: string): void
  stats(): string
  /** Rings when there are events to take; keeps no process alive. */
  listen(bell: () => void): void
  unlisten(): void
  /** A JSON object with the fields of `hub-state`; null without a hub. */
  hubState(): string | null
  /** A JSON array of {@link EventRecord}. */
  takeEvents(): string
}

/** Sends and asks. A call with a ticket can be given up. */
export interface NativeClient {
  /** For one call, which must follow. */
  takeTicket(): number
  giveUp(ticket: number): void
  /** Items `{ id, name, version, tag, delayMs, startAt, input }` give `{ created, same }` each. */
  start(itemsJson: string, ticket?: number): Promise<Outcome<string>>
  /** `{ kind: 'event' | 'queue' | 'cancel', … }` gives `{ accepted }`. */
  send(itemJson: string, ticket?: number): Promise<Outcome<string>>
  get(id: string, ticket?: number): Promise<Outcome<string | null>>
  wait(id: string, timeoutMs: number, ticket?: number): Promise<Outcome<string | null>>
  history(id: string, execution: number, ticket?: number): Promise<Outcome<string>>
  /** `{ named, tasks: [{ id, name, input, … }] }` gives `{ created, same }` each. */
  enqueue(tasksJson: string, ticket?: number): Promise<Outcome<string>>
  /** A request `{ op, … }` about standalone activities; the answer depends on the op. */
  standalone(requestJson: string, ticket?: number): Promise<Outcome<string>>
  /** A request `{ op, … }`; the answer depends on the op. */
  manage(requestJson: string, ticket?: number): Promise<Outcome<string>>
}

/** Runs turns and activities. */
export interface NativeRuntime {
  start(handlersJson: string): Promise<Outcome<null>>
  /** The next batch of work; null once the runtime is closed. */
  next(max: number): Promise<string | null>
  /** Takes answers; gives the next batch when something is ready then. */
  complete(text: string, max: number): string | null | undefined
  shutdown(timeoutMs: number): Promise<Outcome<null>>
  /** Numbers as JSON text; null before the start. */
  metrics(): string | null | undefined
  /** A shutdown in progress waits no longer for what runs. */
  hurry(): void
  /** How often `signOfLife` is to be called; 0 when nobody asks. */
  lifeIntervalMs(): number
  signOfLife(): void
  /** JSON; null before the start. */
  health(): string | null
}

/** The log of the process. */
export interface NativeLog {
  initTracing(file: string, level: string, format: string): Outcome<null>
  /** Does nothing when lines go somewhere already. */
  startLogging(level: string, format: string, serviceName: string | undefined, serviceVersion: string | undefined): void
  logLine(line: NativeLogLine): void
}

/** Rules and defaults. */
export interface NativeOptions {
  /** Every option of a runtime in force, or the broken rule. */
  ofRuntime(options: NativeRuntimeOptions): Outcome<NativeRuntimeOptions>
  /** The same for a provider. */
  ofPool(options: NativePoolOptions): Outcome<NativePoolOptions>
}

/** The addon. */
export interface NativeBinding {
  JsPostgresProvider: {
    connect(url: string, schema: string, options: NativePoolOptions): Promise<Outcome<NativeProvider>>
    /** Every pool and hub of the process. */
    closeAll(): Promise<Outcome<null>>
  }
  JsClient: new (provider: NativeProvider) => NativeClient
  JsRuntime: new (provider: NativeProvider, options: NativeRuntimeOptions) => NativeRuntime
  JsLog: NativeLog
  JsOptions: NativeOptions
  /** Findings of a check as JSON text. */
  JsDoctor: { examine(url: string, schema: string, pool: NativePoolOptions, runtime: NativeRuntimeOptions): Promise<Outcome<string>> }
}

let loaded: NativeBinding | undefined

/** The addon, loaded at the first call. */
export function binding(): NativeBinding {
  if (loaded === undefined) {
    try {
      loaded = loadBinding() as NativeBinding
    } catch (cause) {
      const platform = `${process.platform} ${process.arch}`
      const message = `the native addon of holdfast for ${platform} could not be loaded: ${cause instanceof Error ? cause.message : String(cause)}`
      throw new HoldfastError(message, { code: 'NATIVE_MISSING', cause })
    }
  }
  return loaded
}

/** Puts another addon in place (tests do), or takes it away again. */
export function useBinding(replacement: NativeBinding | undefined): void {
  loaded = replacement
}
