/**
 * Handles: one instance with the client that talks to it.
 */
import { type AbortOptions, type WaitOptions, signalOf } from './abort.js'
import type { Client, SendResult } from './client.js'
import type { EventDefinition, InputArguments } from './define.js'
import { orchestrationError } from './error-payload.js'
import { CancelledError } from './errors.js'
import type { SendOptions } from './send-options.js'
import type { InstanceRecord, OrchestrationStatus } from './status.js'
import { checkWhole } from './ids.js'

/** Longest single wait of `result`; it asks again until the instance ends. */
const SLICE_MS = 60_000

/**
 * An instance that was started.
 *
 * @example
 * const handle = await client.start(checkout, order, { id: 'order-17' })
 * const receipt = await handle.result()
 */
export class OrchestrationHandle<O = unknown> {
  /** Id of the instance. */
  readonly id: string
  readonly #client: Client

  /** @internal */
  constructor(client: Client, id: string) {
    this.#client = client
    this.id = id
  }

  /**
   * Waits for the end and gives the output. Rejects with OrchestrationFailedError, CancelledError, or, when `timeoutMs` is
   * given and over, TimeoutError. Without it, it waits for as long as it takes. A `signal` that is aborted ends the wait with
   * its reason.
   */
  async result(options: WaitOptions = {}): Promise<O> {
    const record = await this.#end(options.timeoutMs, signalOf(options))
    if (record.status === 'Completed') return record.output as O
    const error = record.error ?? { name: 'Error', message: 'Orchestration failed' }
    if (record.status === 'Cancelled') throw new CancelledError(error.message, { code: 'CANCELLED' })
    throw orchestrationError(record.name, error)
  }

  async #end(timeoutMs: number | undefined, signal: AbortSignal | undefined): Promise<InstanceRecord> {
    if (timeoutMs !== undefined) return await this.#client.waitForEnd(this.id, checkWhole(timeoutMs, 'timeoutMs', 0), signal)
    for (;;) {
      const record = await this.#client.pollForEnd(this.id, SLICE_MS, signal)
      if (record !== null) return record
    }
  }

  /** How the instance stands. */
  async status(options?: AbortOptions): Promise<OrchestrationStatus> {
    return await this.#client.getStatus(this.id, options)
  }

  /** Asks the instance to stop. */
  async cancel(reason = '', options?: AbortOptions): Promise<SendResult> {
    return await this.#client.cancelInstance(this.id, reason, options)
  }

  /** Raises a one-shot event. */
  async raise<T = unknown>(event: string | EventDefinition<T>, ...data: InputArguments<T, [options?: SendOptions]>): Promise<SendResult> {
    return await this.#client.raiseEvent<T>(this.id, event, ...data)
  }
}
