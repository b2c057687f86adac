/**
 * Commands and replies as JSON text, put together from texts that are already encoded: a user value is written once, at the
 * call that hands it over.
 */

/** What a command asks for. `input` and `retry` are JSON texts. */
export type CommandSpec =
  | {
      readonly type: 'activity'
      readonly name: string
      readonly input: string
      readonly session: string | undefined
      readonly retry: string | undefined
      readonly timeoutMs: number | undefined
    }
  | { readonly type: 'timer'; readonly delayMs: number }
  | { readonly type: 'event'; readonly name: string }
  | { readonly type: 'queue'; readonly name: string }
  | { readonly type: 'local'; readonly name: string }
  | { readonly type: 'read'; readonly instance: string; readonly key: string }
  | {
      readonly type: 'child' | 'detached'
      readonly name: string
      readonly version: string | undefined
      readonly instance: string | undefined
      readonly input: string
    }

/** Where the code stands: one of the engine's outcome words with its payload as JSON text. */
export type Outcome =
  | { readonly type: 'waiting' }
  | { readonly type: 'completed'; readonly output: string }
  | { readonly type: 'failed'; readonly error: string }
  | { readonly type: 'continued'; readonly input: string; readonly version: string | undefined }
  | { readonly type: 'foreign'; readonly message: string }
  | { readonly type: 'diverged' }

/** The answer of a turn, or of an activity, that says nothing about its outcome: its lease goes back and it runs again. */
export function abandoned(h: number): string {
  return `{"h":${h},"abandon":true}`
}

/** The answer for what has no function here: nothing was started, and it comes again later. */
export function unregistered(h: number): string {
  return `{"h":${h},"unregistered":true}`
}

const quote = (text: string): string => JSON.stringify(text)

function optional(key: string, value: string | undefined): string {
  return value === undefined ? '' : `,"${key}":${value}`
}

const text = (value: string | undefined): string | undefined => (value === undefined ? undefined : quote(value))

/** A command given after `step` facts; `tag` is apart because a task takes its tag after it was made. */
export function encodeCommand(spec: CommandSpec, step: number, tag?: string): string {
  switch (spec.type) {
    case 'activity': {
      const timeout = spec.timeoutMs === undefined ? undefined : String(spec.timeoutMs)
      const options = optional('tag', text(tag)) + optional('session', text(spec.session))
      const limits = optional('retry', spec.retry) + optional('timeoutMs', timeout)
      return `{"activity":{"step":${step},"name":${quote(spec.name)},"input":${spec.input}${options}${limits}}}`
    }
    case 'timer':
      return `{"timer":{"step":${step},"delayMs":${spec.delayMs}}}`
    case 'event':
    case 'queue':
    case 'local':
      return `{"${spec.type}":{"step":${step},"name":${quote(spec.name)}}}`
    case 'read':
      return `{"read":{"step":${step},"instance":${quote(spec.instance)},"key":${quote(spec.key)}}}`
    case 'child':
    case 'detached': {
      const target = optional('version', text(spec.version)) + optional('instance', text(spec.instance))
      return `{"${spec.type}":{"step":${step},"name":${quote(spec.name)}${target},"input":${spec.input}}}`
    }
  }
}

/** The command `seq` is no longer wanted. */
export function encodeCancel(seq: number, step: number): string {
  return `{"cancel":{"step":${step},"seq":${seq}}}`
}

/** Sets the custom status, or resets it with null. */
export function encodeStatus(status: string | null, step: number): string {
  return `{"status":{"step":${step},"status":${status === null ? 'null' : quote(status)}}}`
}

/** Keeps a value; `at` is the time of the last fact. */
export function encodeSet(key: string, value: string, at: number, step: number): string {
  return `{"set":{"step":${step},"key":${quote(key)},"value":${quote(value)},"at":${at}}}`
}

/** Drops the value of a key, or without one all values. */
export function encodeClear(key: string | undefined, step: number): string {
  return key === undefined ? `{"clearAll":{"step":${step}}}` : `{"clear":{"step":${step},"key":${quote(key)}}}`
}

/** The result of a local step, one of `ok` and `err` as JSON text. */
export function encodeLocal(seq: number, at: number, end: { ok: string } | { err: string }): string {
  return `{"seq":${seq},"at":${at},${'ok' in end ? `"ok":${end.ok}` : `"err":${end.err}`}}`
}

/** The answer to one activation. */
export function encodeReply(frame: number, applied: number, commands: readonly string[], outcome: Outcome, locals: readonly string[] = []): string {
  const inPlace = locals.length === 0 ? '' : `"l":[${locals.join(',')}],`
  return `{"h":${frame},"n":${applied},"c":[${commands.join(',')}],${inPlace}"o":${encodeOutcome(outcome)}}`
}

function encodeOutcome(outcome: Outcome): string {
  switch (outcome.type) {
    case 'waiting':
    case 'diverged':
      return `"${outcome.type}"`
    case 'completed':
      return `{"completed":{"output":${outcome.output}}}`
    case 'failed':
      return `{"failed":{"error":${outcome.error}}}`
    case 'continued':
      return `{"continued":{"input":${outcome.input}${optional('version', text(outcome.version))}}}`
    case 'foreign':
      return `{"foreign":{"message":${quote(outcome.message)}}}`
  }
}
