/**
 * What crosses between the engine and this package in a turn, as parsed JSON. The engine's side is the replay crate's
 * `activation` and `command`; both must agree to the letter.
 */
import type { ErrorPayload } from '../error-payload.js'
import type { KeptValue } from './values.js'

/** A fact of an execution, with the database time of the turn that recorded it. */
export type Fact =
  | { t: 'done'; at: number; seq: number; value: unknown }
  | { t: 'fail'; at: number; seq: number; error: ErrorPayload }
  | { t: 'event'; at: number; name: string; data: unknown }
  | { t: 'queue'; at: number; name: string; data: unknown }
  | { t: 'cancel'; at: number; reason: string }

/** A message that its execution did not read before it continued as new. */
export interface CarriedMessage {
  kind: 'event' | 'queue'
  name: string
  data: unknown
}

/** What a cold frame starts from. */
export interface ActivationStart {
  instance: string
  execution: number
  name: string
  version: string
  input: unknown
  parent?: string
  seed: string
  atMs: number
  carried?: CarriedMessage[]
  customStatus?: string
  values?: KeptValue[]
  replaying: boolean
}

/** What user code is given in one turn: `h` frame, `n` facts applied before, `f` facts to apply, `r` how many are replayed, `l` no local step may run. */
export interface Activation {
  h: number
  start?: ActivationStart
  n: number
  f: Fact[]
  r: number
  l?: boolean
}
