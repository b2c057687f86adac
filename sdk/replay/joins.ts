/**
 * Steps together: `all` waits for every part, `race` for the first. Both nest to any depth; parts that are no longer wanted
 * are taken back, also inside a part that is an `all` or `race` itself.
 */
import { invalidArgument, kindOf } from '../ids.js'
import { taskIn } from '../payload.js'
import { type TaskHost, TaskNode, isTask, readAgain } from './task.js'

/** Checks the parts of an `all` or `race`: tasks of this context, or plain values that need no waiting. */
export function checkParts(parts: readonly unknown[], what: string): readonly unknown[] {
  for (const [index, part] of parts.entries()) {
    if (isTask(part)) continue
    if (typeof part === 'object' && part !== null && typeof (part as { then?: unknown }).then === 'function') {
      throw invalidArgument(
        `argument ${index} of ${what} is a promise; only tasks of the orchestration's context can be put there (Promise.all and Promise.race take both)`,
      )
    }
    if (typeof part === 'function' || typeof part === 'symbol') {
      throw invalidArgument(`argument ${index} of ${what} is ${kindOf(part)}, not a task`)
    }
    const where = taskIn(part)
    if (where !== undefined) {
      throw invalidArgument(
        `argument ${index} of ${what} is ${kindOf(part)} that holds a task at ${where}; put tasks there directly, or nest them: ctx.all([a, ctx.all([b, c])])`,
      )
    }
  }
  return parts
}

/** Parts that were put together are waited for by the whole. */
function use(host: TaskHost, parts: readonly unknown[]): void {
  for (const part of parts) if (isTask(part)) host.used(part)
}

function rerunParts(parts: readonly unknown[]): void {
  for (const part of parts) if (isTask(part)) part.rerun()
}

/** What `all` says about one part: its value, or the text of its error (with the error itself as `reason`, not enumerable). */
export type Settled<T> = { ok: T; err?: undefined } | { err: string; readonly reason: Error; ok?: undefined }

/** What `race` says: which part came first and its value; when it failed, the text of its error and `error: true`. */
export type RaceResult<T> =
  | { index: number; value: T; error?: undefined }
  | { index: number; value: string; error: true; readonly reason: Error }

/** All parts, in argument order; never fails, except when the instance is cancelled. */
export class AllTask extends TaskNode<unknown[]> {
  #left = 0

  constructor(
    host: TaskHost,
    private readonly parts: readonly unknown[],
  ) {
    super(host)
    use(host, parts)
  }

  get title(): string {
    return `all of ${this.parts.length}`
  }

  protected begin(): void {
    const tasks = this.parts.filter(isTask)
    // Parts that settle while others are still being started must not end the whole too early.
    this.#left = tasks.length + 1
    const count = (part?: TaskNode): void => {
      this.#left -= 1
      if (part !== undefined && isCancelled(this.host, part)) this.fail(part.error)
      else if (this.#left === 0) this.succeed(this.parts.map(settledOf))
    }
    for (const task of tasks) {
      task.startAgain()
      if (task.isSettled) count(task)
      else task.listen(count)
    }
    count()
  }

  protected abandon(): void {
    for (const part of this.parts) if (isTask(part)) part.lose()
  }

  protected override reread(value: unknown): unknown {
    return (value as Settled<unknown>[]).map((each) => {
      if ('ok' in each) return { ok: readAgain(each.ok) }
      return withReason({ err: readAgain(each.err) }, each.reason)
    })
  }

  override rerun(): void {
    super.rerun()
    rerunParts(this.parts)
  }
}

/** The first part that is settled; the others are taken back. Parts after one that is ready at once are not started. */
export class RaceTask extends TaskNode<RaceResult<unknown>> {
  #isDecided = false

  constructor(
    host: TaskHost,
    private readonly parts: readonly unknown[],
  ) {
    super(host)
    use(host, parts)
  }

  get title(): string {
    return `race of ${this.parts.length}`
  }

  protected begin(): void {
    this.#isDecided = false
    for (const [index, part] of this.parts.entries()) {
      if (isTask(part)) {
        part.startAgain()
        if (!part.isSettled) {
          part.listen(() => this.#won(index))
          continue
        }
      }
      this.#won(index)
      return
    }
  }

  #won(index: number): void {
    if (this.state !== 'open' || this.#isDecided) return
    const part = this.parts[index]
    if (isTask(part) && isCancelled(this.host, part)) {
      this.fail(part.error)
      return
    }
    this.#isDecided = true
    const result = raceResultOf(this.parts[index], index)
    this.#withdrawLosers(index)
    this.succeed(result)
  }

  #withdrawLosers(winner: number): void {
    for (const [index, part] of this.parts.entries()) if (index !== winner && isTask(part)) part.lose()
  }

  protected abandon(): void {
    for (const part of this.parts) if (isTask(part)) part.lose()
  }

  protected override reread(value: unknown): unknown {
    const result = value as RaceResult<unknown>
    const again = { ...result, value: readAgain(result.value) }
    return result.error === true ? withReason(again, result.reason) : again
  }

  override rerun(): void {
    super.rerun()
    rerunParts(this.parts)
  }
}

/** The part was open when the instance was cancelled, so the whole is over, too. */
function isCancelled(host: TaskHost, part: TaskNode): boolean {
  return part.state === 'failed' && host.cancellation !== undefined && part.error === host.cancellation
}

function settledOf(part: unknown): Settled<unknown> {
  if (!isTask(part)) return { ok: part ?? null }
  return part.state === 'done' ? { ok: part.value } : withReason({ err: textOf(part.error) }, part.error)
}

function raceResultOf(part: unknown, index: number): RaceResult<unknown> {
  if (!isTask(part)) return { index, value: part ?? null }
  if (part.state === 'done') return { index, value: part.value }
  return withReason({ index, value: textOf(part.error), error: true as const }, part.error)
}

function withReason<R extends object>(result: R, error: unknown): R & { readonly reason: Error } {
  return Object.defineProperty(result, 'reason', { value: error }) as R & { readonly reason: Error }
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
