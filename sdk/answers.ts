/**
 * The answers of one runtime on their way to the engine: those of one turn of the event loop go together, heartbeats with them.
 *
 * No answer is lost: what cannot be handed over is abandoned, so that its lease goes back and its work runs again. It never
 * throws.
 */
import { abandoned } from './replay/encode.js'

/** How long a heartbeat waits for others to go with it. */
const BEAT_MS = 50

/** Length of one text of answers, in UTF-16 units: JavaScript's strings end at 512 Mi, and one payload may have 64. */
const ANSWER_LENGTH = 64 * 1024 * 1024

export class Answers {
  readonly #complete: (text: string) => string | null | undefined
  readonly #next: (batch: string) => void
  readonly #turns: string[] = []
  readonly #activities: string[] = []
  readonly #beats = new Map<number, string>()
  #isBeating = false
  #isFlushing = false
  #isSending = false

  /** `complete` hands answers over and may bring what follows from them at once, which goes to `next`. */
  constructor(complete: (text: string) => string | null | undefined, next: (batch: string) => void) {
    this.#complete = complete
    this.#next = next
  }

  /** Notes an answer; it goes back with all others of this turn of the event loop. */
  add(kind: 'turn' | 'activity', text: string): void {
    const answers = kind === 'turn' ? this.#turns : this.#activities
    answers.push(text)
    if (this.#isFlushing) return
    this.#isFlushing = true
    setImmediate(() => {
      if (this.#isFlushing) this.flush()
    })
  }

  /** Notes a heartbeat; the newest of each activity goes with the next answers, a moment later at the latest. */
  beat(h: number, details: string): void {
    this.#beats.set(h, details)
    if (this.#isBeating) return
    this.#isBeating = true
    setTimeout(() => {
      this.#isBeating = false
      this.flush()
    }, BEAT_MS).unref()
  }

  /** Hands over what is there, and what is answered at once to what comes back. */
  flush(): void {
    this.#isFlushing = false
    // What is added meanwhile goes with the next round of the loop below.
    if (this.#isSending) return
    this.#isSending = true
    try {
      this.#sendAll()
    } finally {
      this.#isSending = false
    }
  }

  /** A batch that nobody can read: an answer that names nobody makes the engine take back all that JavaScript has in hand. */
  giveUp(): void {
    this.#send('')
  }

  #sendAll(): void {
    while (this.#turns.length + this.#activities.length + this.#beats.size > 0) {
      const turns = cut(this.#turns)
      const activities = cut(this.#activities)
      if (this.#send(textOf(turns, activities, this.#takeBeats()))) continue
      this.#send(textOf(turns.map(abandonedOf), activities.map(abandonedOf)))
    }
  }

  #takeBeats(): string {
    if (this.#beats.size === 0) return ''
    const beats = [...this.#beats].map(([h, details]) => `{"h":${h},"details":${details}}`)
    this.#beats.clear()
    return `,"beats":[${beats.join(',')}]`
  }

  /** Whether the engine took it. */
  #send(text: string): boolean {
    let batch
    try {
      batch = this.#complete(text)
    } catch (error) {
      reportDefect(error)
      return false
    }
    if (typeof batch === 'string') this.#next(batch)
    return true
  }
}

/** Only a defect of this package or of the engine gets here: a warning of the process says so. */
export function reportDefect(error: unknown): void {
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined }
  process.emitWarning(message, { code: 'HOLDFAST_INTERNAL', ...(stack === undefined ? {} : { detail: stack }) })
}

/** Takes answers off the front: as many as fit one text, at least one. */
function cut(answers: string[]): string[] {
  let length = 0
  let count = 0
  for (const answer of answers) {
    length += answer.length
    if (count > 0 && length > ANSWER_LENGTH) break
    count += 1
  }
  return answers.splice(0, count)
}

function textOf(turns: readonly string[], activities: readonly string[], beats = ''): string {
  return `{"turns":[${turns.join(',')}],"activities":[${activities.join(',')}]${beats}}`
}

/** The answer that abandons what `answer` answers; each begins with its handle. */
function abandonedOf(answer: string): string {
  return abandoned(Number.parseInt(answer.slice('{"h":'.length), 10))
}
