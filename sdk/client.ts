/**
 * The client: starts, asks, tells and waits. It needs no runtime in its process.
 *
 * Arguments are checked and encoded before anything is sent; a bad one rejects and leaves nothing behind.
 */
import { randomUUID } from 'node:crypto'
import { type EventDefinition, type InputArguments, type OrchestrationDefinition, nameOf } from './define.js'
import { InstanceExistsError, HoldfastError, TimeoutError } from './errors.js'
import { OrchestrationHandle } from './handle.js'
import { checkInstanceId, checkNewInstanceId, checkVersion, checkWhole, invalidArgument } from './ids.js'
import { Management } from './management.js'
import { type NativeClient, binding } from './native.js'
import { encode } from './payload.js'
import { type PostgresProvider, nativeOf } from './provider.js'
import { type InstanceRecord, type OrchestrationResult, resultOf } from './status.js'
import { unwrap } from './unwrap.js'

/** How `start` starts an instance. */
export interface StartOptions {
  /** Id of the instance. Default: a fresh UUID. */
  id?: string
  /** Exact version. Default: that of the definition, else the newest of the node that runs the first turn. */
  version?: string
}

/** What a start tells. */
export interface StartResult {
  /** False when an instance with this id was there before; it goes on undisturbed. */
  created: boolean
}

/** What a message tells. */
export interface SendResult {
  /** False when the instance has ended already. */
  accepted: boolean
}

/** How long `waitForOrchestration` waits unless told otherwise. */
const WAIT_MS = 30_000

interface StartReply {
  created: boolean
  same: boolean
}

/**
 * Starts orchestrations and talks to them.
 *
 * @example
 * const client = new Client(provider)
 * await client.startOrchestration('order-17', 'checkout', order)
 * const done = await client.waitForOrchestration('order-17')
 */
export class Client extends Management {
  readonly #native: NativeClient

  constructor(provider: PostgresProvider) {
    const native = new (binding().JsClient)(nativeOf(provider))
    super(native)
    this.#native = native
  }

  /** Starts an instance. An id that exists is left alone: `created` is false then. */
  async startOrchestration<I = unknown>(
    instanceId: string,
    orchestration: string | OrchestrationDefinition<I, unknown>,
    ...rest: InputArguments<I>
  ): Promise<StartResult> {
    const { created } = await this.#start(instanceId, orchestration, rest[0], undefined)
    return { created }
  }

  /** Starts an instance of an exact version. */
  async startOrchestrationVersioned<I = unknown>(
    instanceId: string,
    orchestration: string | OrchestrationDefinition<I, unknown>,
    input: NoInfer<I>,
    version: string,
  ): Promise<StartResult> {
    if (typeof version !== 'string' && version !== undefined && version !== null) {
      const message = 'version must be a string: the order is (instanceId, orchestration, input, version)'
      throw invalidArgument(typeof input === 'string' ? `${message}; were input and version swapped?` : message)
    }
    const { created } = await this.#start(instanceId, orchestration, input, version)
    return { created }
  }

  /** The same as `startOrchestration`. */
  async startOrchestrationTyped<I = unknown>(
    instanceId: string,
    orchestration: string | OrchestrationDefinition<I, unknown>,
    ...rest: InputArguments<I>
  ): Promise<StartResult> {
    return await this.startOrchestration<I>(instanceId, orchestration, ...rest)
  }

  /** The same as `startOrchestrationVersioned`. */
  async startOrchestrationVersionedTyped<I = unknown>(
    instanceId: string,
    orchestration: string | OrchestrationDefinition<I, unknown>,
    input: NoInfer<I>,
    version: string,
  ): Promise<StartResult> {
    return await this.startOrchestrationVersioned<I>(instanceId, orchestration, input, version)
  }

  /**
   * Starts an instance and gives its handle. Starting the same id with the same name and input again gives the handle of the
   * running one; with another name or input it rejects with {@link InstanceExistsError}.
   */
  async start<O = unknown, I = unknown>(
    orchestration: string | OrchestrationDefinition<I, O>,
    ...rest: InputArguments<I, [options?: StartOptions]>
  ): Promise<OrchestrationHandle<O>> {
    const options = rest[1] ?? {}
    const id = options.id ?? randomUUID()
    const { created, same } = await this.#start(id, orchestration, rest[0], options.version)
    if (!created && !same) {
      const message = `instance '${id}' exists and was started with another orchestration or input`
      throw new InstanceExistsError(message, { code: 'INSTANCE_EXISTS' })
    }
    return this.handle<O>(id)
  }

  /** The handle of an instance, without asking whether it exists. */
  handle<O = unknown>(instanceId: string): OrchestrationHandle<O> {
    return new OrchestrationHandle<O>(this, checkInstanceId(instanceId))
  }

  async #start(instanceId: string, orchestration: unknown, input: unknown, version: string | undefined): Promise<StartReply> {
    if (typeof instanceId === 'object' && instanceId !== null && 'type' in instanceId) {
      throw invalidArgument('instance id must be a string, not a definition: the order is (instanceId, orchestration, input)')
    }
    const id = checkNewInstanceId(instanceId)
    const name = nameOf(orchestration, 'orchestration', 'orchestration name')
    const exact = version ?? (typeof orchestration === 'object' ? (orchestration as OrchestrationDefinition).version : undefined)
    if (exact !== undefined && exact !== null) checkVersion(exact)
    const text = encode(input, `input of orchestration '${name}'`)
    const head = `"id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"version":${JSON.stringify(exact ?? null)}`
    const replies = JSON.parse(unwrap(await this.#native.start(`[{${head},"input":${text}}]`))) as StartReply[]
    const reply = replies[0]
    if (reply === undefined) throw new HoldfastError('the engine did not answer the start', { code: 'INTERNAL' })
    return reply
  }

  /** Waits for the end of an instance; follows continue-as-new. Rejects with {@link TimeoutError} when the time is over. */
  async waitForOrchestration<O = unknown>(instanceId: string, timeoutMs: number = WAIT_MS): Promise<OrchestrationResult<O>> {
    return resultOf<O>(await this.waitForEnd(instanceId, timeoutMs))
  }

  /** Waits for the end of an instance and gives its output; rejects when it failed. */
  async waitForOrchestrationTyped<O = unknown>(instanceId: string, timeoutMs: number = WAIT_MS): Promise<O> {
    const record = await this.waitForEnd(instanceId, timeoutMs)
    const result = resultOf<O>(record)
    if (result.status !== 'Completed') {
      throw new HoldfastError(result.error || 'Orchestration failed', { code: record.error?.code ?? 'ORCHESTRATION_FAILED' })
    }
    return result.output as O
  }

  /** @internal The ended instance as the addon tells it. */
  async waitForEnd(instanceId: string, timeoutMs: number): Promise<InstanceRecord> {
    const record = await this.pollForEnd(instanceId, timeoutMs)
    if (record === null) {
      const message = `Operation timed out: instance '${instanceId}' did not end within ${timeoutMs} ms`
      throw new TimeoutError(message, { code: 'TIMEOUT', retryable: true })
    }
    return record
  }

  /** @internal The ended instance, or null when the time is over. */
  async pollForEnd(instanceId: string, timeoutMs: number): Promise<InstanceRecord | null> {
    const id = checkInstanceId(instanceId)
    const text = unwrap(await this.#native.wait(id, checkWhole(timeoutMs, 'timeoutMs', 0)))
    return text === null || text === undefined ? null : (JSON.parse(text) as InstanceRecord)
  }

  /** Asks an instance to stop. */
  async cancelInstance(instanceId: string, reason = ''): Promise<SendResult> {
    const id = checkInstanceId(instanceId)
    const text = String(reason)
    if (!text.isWellFormed() || text.includes('\0')) throw invalidArgument('reason must be well-formed Unicode without NUL')
    return await this.#send('cancel', id, '', encode(null, 'data'), text)
  }

  /** The same as `cancelInstance`. */
  async cancelOrchestration(instanceId: string, reason = ''): Promise<SendResult> {
    return await this.cancelInstance(instanceId, reason)
  }

  /** Raises a one-shot event; one that nobody waits for yet is kept. */
  async raiseEvent<T = unknown>(instanceId: string, event: string | EventDefinition<T>, ...data: InputArguments<T>): Promise<SendResult> {
    const id = checkInstanceId(instanceId)
    const name = nameOf(event, 'event', 'event name')
    return await this.#send('event', id, name, encode(data[0], `data of event '${name}'`), '')
  }

  /** Appends a message to a queue of an instance. */
  async enqueueEvent<T = unknown>(instanceId: string, queue: string | EventDefinition<T>, ...data: InputArguments<T>): Promise<SendResult> {
    const id = checkInstanceId(instanceId)
    const name = nameOf(queue, 'event', 'queue name')
    return await this.#send('queue', id, name, encode(data[0], `message of queue '${name}'`), '')
  }

  /** The same as `raiseEvent`. */
  async raiseEventTyped<T = unknown>(instanceId: string, event: string | EventDefinition<T>, ...data: InputArguments<T>): Promise<SendResult> {
    return await this.raiseEvent<T>(instanceId, event, ...data)
  }

  /** The same as `enqueueEvent`. */
  async enqueueEventTyped<T = unknown>(instanceId: string, queue: string | EventDefinition<T>, ...data: InputArguments<T>): Promise<SendResult> {
    return await this.enqueueEvent<T>(instanceId, queue, ...data)
  }

  async #send(kind: string, id: string, name: string, data: string, reason: string): Promise<SendResult> {
    const head = `"kind":"${kind}","instance":${JSON.stringify(id)},"name":${JSON.stringify(name)}`
    const item = `{${head},"data":${data},"reason":${JSON.stringify(reason)}}`
    const { accepted } = JSON.parse(unwrap(await this.#native.send(item))) as SendResult
    return { accepted }
  }
}
