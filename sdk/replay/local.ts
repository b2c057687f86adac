/**
 * Local steps: a function of the orchestration's own file, run in place while its turn is held, recorded like an activity.
 *
 * The driver begins a step only when no recorded result is left for it, so a replay never runs it again. The result is
 * written with the turn's commit; when the process dies before that, the step runs again. It never touches the frame.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { encodeError } from '../error-payload.js'
import { CancelledError, HoldfastError, TimeoutError } from '../errors.js'
import { encode } from '../payload.js'
import { type CheckedRetry, checkedRetry, retryDelay } from '../retry.js'
import type { RetryPolicy } from '../retry.js'
import { CommandTask, type TaskHost } from './task.js'

/** What a local step is given. */
export interface StepContext {
  /** Name of the step. */
  readonly name: string
  /** Which try of its retry policy this is, from 1. */
  readonly attempt: number
  /** The same for every try and every run of this step: pass it on to what you call. */
  readonly idempotencyKey: string
  /** Aborted when the result is no longer wanted, its time limit passed, or its instance is being cancelled. */
  readonly signal: AbortSignal
}

/** How a local step is to be run. */
export interface StepOptions {
  /** When and how often it is tried again, in place: the turn is held meanwhile. Default: not at all. */
  retry?: RetryPolicy
}

/** The code of a local step. */
export type StepFunction<T> = (step: StepContext) => T | PromiseLike<T>

/** The step whose code runs at this moment, also after an await. */
const running = new AsyncLocalStorage<LocalTask>()

/** Refuses a call of an orchestration's context by code of one of its steps: a replay does not run it, so it cannot repeat the call. */
export function refuseInStep(host: TaskHost): void {
  const step = running.getStore()
  if (step?.isOf(host) !== true) return
  const message =
    `the context of the orchestration was used inside its step '${step.name}': a replay does not run the step, so it could not ` +
    'repeat that. Return what you need from the step, and use ctx after it'
  throw new HoldfastError(message, { code: 'CONTEXT_IN_STEP' })
}

/** What a step ended with: one of the two as JSON text. */
export type StepEnd = { readonly ok: string } | { readonly err: string }

/** A task that runs a local step. */
export class LocalTask<T = unknown> extends CommandTask<T> {
  readonly #controller = new AbortController()

  constructor(
    host: TaskHost,
    readonly name: string,
    private readonly fn: StepFunction<unknown>,
    private readonly retry: RetryPolicy | undefined,
  ) {
    super(host, { type: 'local', name })
  }

  /** Whether it is a step of this execution. */
  isOf(host: TaskHost): boolean {
    return this.host === host
  }

  /** Its result is no longer wanted. */
  abort(): void {
    this.#controller.abort(new CancelledError(`step '${this.name}' is no longer wanted`, { code: 'CANCELLED' }))
  }

  /** Runs the step with its retries; never rejects. `key` names the execution. */
  async run(key: string, payloadLimit: number): Promise<StepEnd> {
    const policy = this.retry === undefined ? undefined : checkedRetry(this.retry)
    const startedAt = performance.now()
    for (let attempt = 1; ; attempt++) {
      try {
        const value = await this.#try(attempt, `${key}:${this.seq}`, policy)
        return { ok: encode(value, `result of step '${this.name}'`, payloadLimit) }
      } catch (error) {
        const pause = policy && retryDelay(policy, attempt, error, performance.now() - startedAt)
        if (pause === undefined || this.#controller.signal.aborted) return { err: encodeError(error) }
        await delay(pause, undefined, { signal: this.#controller.signal }).catch(() => {})
      }
    }
  }

  async #try(attempt: number, idempotencyKey: string, policy: CheckedRetry | undefined): Promise<unknown> {
    const limit = policy?.timeoutMs
    const run = async (signal: AbortSignal): Promise<unknown> =>
      await running.run(this, () => this.fn({ name: this.name, attempt, idempotencyKey, signal }))
    if (limit === undefined) return await run(this.#controller.signal)
    const controller = new AbortController()
    const stop = new AbortController()
    const late = new TimeoutError(`step '${this.name}' took longer than ${limit} ms`, { code: 'TIMEOUT', retryable: true })
    const signal = AbortSignal.any([this.#controller.signal, controller.signal])
    const timer = delay(limit, undefined, { signal: stop.signal, ref: false }).then(
      () => {
        controller.abort(late)
        throw late
      },
      () => new Promise<never>(() => {}),
    )
    try {
      return await Promise.race([run(signal), timer])
    } finally {
      stop.abort()
    }
  }
}
