/**
 * Events: what the engine tells about itself, given to listeners of the provider.
 *
 * The addon keeps events only while somebody listens, and rings a bell; they are taken at most every {@link QUIET_MS}, so
 * that a storm crosses in batches. Neither the bell nor the pause keeps a process alive.
 */
import { invalidArgument, kindOf } from './ids.js'
import type { EventRecord, NativeProvider } from './native.js'

/** How much somebody should care: the engine's state changed, somebody may act, something cannot go on. */
export type EventLevel = 'info' | 'warn' | 'error'

/** Something that happened; docs/events.md lists the names and the fields of each. */
export interface HoldfastEvent {
  /** A stable word in kebab case, for example `lease-lost`. */
  name: string
  level: EventLevel
  /** For people. */
  message: string
  /** When, by the clock of this process. */
  at: Date
  /** How many this one stands for: above 1 when its kind came faster than it could be told. */
  count: number
  /** What belongs to this name. */
  [field: string]: unknown
}

/** What can be listened to: everything, the levels `warn` and `error`, or the state of the hub for hints of other processes. */
export type EventKind = 'event' | 'warning' | 'hub'

/** Hears events; one that throws, or whose promise rejects, is reported by `process.emitWarning`. */
export type EventListener = (event: HoldfastEvent) => void

/** Shortest pause between two batches. */
const QUIET_MS = 100

const KINDS: readonly EventKind[] = ['event', 'warning', 'hub']

/** The listeners of one provider. */
export class EventEmission {
  readonly #native: NativeProvider
  readonly #listeners = new Map<EventKind, Set<EventListener>>()
  #quiet: NodeJS.Timeout | undefined
  #rungMeanwhile = false
  #closed = false

  constructor(native: NativeProvider) {
    this.#native = native
  }

  on(kind: EventKind, listener: EventListener): void {
    check(kind, listener)
    if (this.#closed) return
    const before = this.#count()
    const listeners = this.#listeners.get(kind) ?? new Set()
    this.#listeners.set(kind, listeners.add(listener))
    if (before === 0) this.#native.listen(() => this.#ring())
    if (kind === 'hub') this.#tellPresent(listener)
  }

  off(kind: EventKind, listener: EventListener): void {
    check(kind, listener)
    if (this.#listeners.get(kind)?.delete(listener) === true && this.#count() === 0) this.#native.unlisten()
  }

  /** Tells what is left, then nothing more. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#quiet)
    if (this.#count() === 0) return
    this.#tell()
    this.#listeners.clear()
    this.#native.unlisten()
  }

  /** A listener of the hub hears how it stands at once. */
  #tellPresent(listener: EventListener): void {
    const present = this.#native.hubState()
    if (present === null) return
    const fields = JSON.parse(present) as Record<string, unknown>
    const level = fields['state'] === 'down' ? 'warn' : 'info'
    const message = `the hub for hints of other processes is ${String(fields['state'])}`
    give('hub', listener, { ...fields, name: 'hub-state', level, message, at: new Date(), count: 1 })
  }

  #count(): number {
    let count = 0
    for (const listeners of this.#listeners.values()) count += listeners.size
    return count
  }

  #ring(): void {
    if (this.#closed) return
    if (this.#quiet !== undefined) {
      this.#rungMeanwhile = true
      return
    }
    this.#quiet = setTimeout(() => {
      this.#quiet = undefined
      if (!this.#rungMeanwhile) return
      this.#rungMeanwhile = false
      this.#ring()
    }, QUIET_MS).unref()
    this.#tell()
  }

  #tell(): void {
    for (const { name, level, message, at, count, ...fields } of JSON.parse(this.#native.takeEvents()) as EventRecord[]) {
      const event: HoldfastEvent = { name, level, message, at: new Date(at), count, ...fields }
      this.#give('event', event)
      if (level !== 'info') this.#give('warning', event)
      if (name === 'hub-state') this.#give('hub', event)
    }
  }

  #give(kind: EventKind, event: HoldfastEvent): void {
    // A copy: a listener may take itself off.
    for (const listener of [...(this.#listeners.get(kind) ?? [])]) give(kind, listener, event)
  }
}

function give(kind: EventKind, listener: EventListener, event: HoldfastEvent): void {
  try {
    const answer: unknown = listener(event)
    if (answer instanceof Promise) answer.catch((error: unknown) => report(kind, error))
  } catch (error) {
    report(kind, error)
  }
}

function check(kind: EventKind, listener: EventListener): void {
  if (!KINDS.includes(kind)) throw invalidArgument(`there are no ${JSON.stringify(kind)} events: listen to one of ${KINDS.join(', ')}`)
  if (typeof listener !== 'function') throw invalidArgument(`listener must be a function, not ${kindOf(listener)}`)
}

function report(kind: EventKind, error: unknown): void {
  const text = error instanceof Error ? (error.stack ?? String(error)) : String(error)
  process.emitWarning(`a listener of ${kind} events failed: ${text}`, { type: 'HoldfastWarning', code: 'HOLDFAST_LISTENER' })
}
