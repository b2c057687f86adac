/**
 * The client: starts, asks, tells and waits. It needs no runtime in its process.
 *
 * Arguments are checked and encoded before anything is sent; a bad one rejects and leaves nothing behind.
 */
import { type AbortOptions, type WaitOptions, abortable, signalOf, splitSignal, waitOf } from './abort.js'
import { randomUUID } from 'node:crypto'
import { ActivityQueue } from './activity/queue.js'
import { type SendOptions, keyOf } from './send-options.js'
import { type EventDefinition, type InputArguments, type OrchestrationDefinition, nameOf } from './define.js'
import { InstanceExistsError, HoldfastError, TimeoutError, ofItem } from './errors.js'
import { OrchestrationHandle } from './handle.js'
import { checkInstanceId, checkName, checkNewInstanceId, checkVersion, checkWhole, invalidArgument, kindOf } from './ids.js'
import { type Time, checkKeys, timeOf } from './management-shapes.js'
import { type NativeClient, binding } from './native.js'
import { encode } from './payload.js'
import { type PostgresProvider, nativeOf } from './provider.js'
import { validated } from './schema.js'
import { type InstanceRecord, type OrchestrationResult, resultOf } from './status.js'
import { unwrap } from './unwrap.js'

/** How `start` starts an instance. */
export interface StartOptions {
  /** Id of the instance. Default: a fresh UUID. */
  id?: string
  /** Exact version. Default: that of the definition, else the newest of the node that runs the first turn. */
  version?: string
  /** Label of the instance, which `listInstances` can filter by. */
  tag?: string
  /** The first turn comes not before this many ms from now. */
  delayMs?: number
  /** The first turn comes not before this time. */
  startAt?: Time
}

/** One start of `startMany`. A definition says what its input must be. */
export interface StartItem extends StartOptions {
  orchestration: string | OrchestrationDefinition<never>
  input?: unknown
}

/** What a definition asks of the item that names it. */
export type StartItemInput<T> = T extends { orchestration: OrchestrationDefinition<infer I> }
  ? undefined extends I
    ? { input?: I }
    : { input: I }
  : unknown

/** What became of one start of `startMany`. */
export interface StartedItem {
  id: string
  /** False when an instance with this id was there before; it goes on undisturbed. */
  created: boolean
  /** False when that instance was started with another orchestration or input. */
  same: boolean
}

/** What a start tells. */
export interface StartResult {
  /** False when an instance with this id was there before; it goes on undisturbed. */
  created: boolean
}

/** What a message tells. */
export interface SendResult {
  /** False when the instance has ended already, and for a request to cancel one that does not exist. */
  accepted: boolean
}

const START_KEYS = ['id', 'version', 'tag', 'delayMs', 'startAt']

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
export class Client extends ActivityQueue {
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
    ...rest: InputArguments<I, [options?: AbortOptions]>
  ): Promise<StartResult> {
    const { created } = await this.#start(instanceId, orchestration, rest[0], {}, signalOf(rest[1]))
    return { created }
  }

  /** Starts an instance of an exact version. */
  async startOrchestrationVersioned<I = unknown>(
    instanceId: string,
    orchestration: string | OrchestrationDefinition<I, unknown>,
    input: NoInfer<I>,
    version: string,
    options?: AbortOptions,
  ): Promise<StartResult> {
    if (typeof version !== 'string' && version !== undefined && version !== null) {
      const message = 'version must be a string: the order is (instanceId, orchestration, input, version)'
      throw invalidArgument(typeof input === 'string' ? `${message}; were input and version swapped?` : message)
    }
    const { created } = await this.#start(instanceId, orchestration, input, { version }, signalOf(options))
    return { created }
  }

  /** The same as `startOrchestration`. */
  async startOrchestrationTyped<I = unknown>(
    instanceId: string,
    orchestration: string | OrchestrationDefinition<I, unknown>,
    ...rest: InputArguments<I, [options?: AbortOptions]>
  ): Promise<StartResult> {
    return await this.startOrchestration<I>(instanceId, orchestration, ...rest)
  }

  /** The same as `startOrchestrationVersioned`. */
  async startOrchestrationVersionedTyped<I = unknown>(
    instanceId: string,
    orchestration: string | OrchestrationDefinition<I, unknown>,
    input: NoInfer<I>,
    version: string,
    options?: AbortOptions,
  ): Promise<StartResult> {
    return await this.startOrchestrationVersioned<I>(instanceId, orchestration, input, version, options)
  }

  /**
   * Starts an instance and gives its handle. Starting the same id with the same name and input again gives the handle of the
   * running one; with another name or input it rejects with {@link InstanceExistsError}.
   */
  async start<O = unknown, I = unknown>(
    orchestration: string | OrchestrationDefinition<I, O>,
    ...rest: InputArguments<I, [options?: StartOptions & AbortOptions]>
  ): Promise<OrchestrationHandle<O>> {
    const { signal, others: options } = splitSignal(rest[1])
    checkKeys(options, 'options', START_KEYS)
    const id = options.id ?? randomUUID()
    const { created, same } = await this.#start(id, orchestration, rest[0], options, signal)
    if (!created && !same) {
      const message = `instance '${id}' exists and was started with another orchestration or input`
      throw new InstanceExistsError(message, { code: 'INSTANCE_EXISTS' })
    }
    return this.handle<O>(id)
  }

  /**
   * Starts many instances, thousands in one transaction, and tells of each whether it was made. Bad items reject before
   * anything is started. When it rejects later, also because of a `signal`, a part may have been started; the same call with the
   * same ids does the rest.
   *
   * @example
   * const started = await client.startMany(orders.map((order) => ({ orchestration: 'checkout', id: `order-${order.id}`, input: order })))
   * const fresh = started.filter(({ created }) => created)
   */
  async startMany<const T extends readonly StartItem[]>(
    items: T & { readonly [K in keyof T]: T[K] & StartItemInput<T[K]> },
    options?: AbortOptions,
  ): Promise<StartedItem[]> {
    const signal = signalOf(options)
    if (!Array.isArray(items)) throw invalidArgument(`items must be an array, not ${kindOf(items)}`)
    const ids: string[] = []
    const texts: string[] = []
    for (const [i, item] of (items as readonly StartItem[]).entries()) {
      checkKeys(item, `item ${i}`, ['orchestration', 'input', ...START_KEYS])
      const id = item.id ?? randomUUID()
      ids.push(id)
      await ofItem(i, async () => {
        await checkInput(item.orchestration, item.input)
        texts.push(startText(id, item.orchestration, item.input, item))
      })
    }
    const started: StartedItem[] = []
    for (const slice of slices(texts)) {
      const outcome = await abortable(this.#native, signal, (ticket) => this.#native.start(`[${slice.join(',')}]`, ticket))
      for (const reply of JSON.parse(unwrap(outcome)) as StartReply[]) {
        started.push({ id: ids[started.length] as string, created: reply.created, same: reply.same })
      }
    }
    return started
  }

  /** The handle of an instance, without asking whether it exists. */
  handle<O = unknown>(instanceId: string): OrchestrationHandle<O> {
    return new OrchestrationHandle<O>(this, checkInstanceId(instanceId))
  }

  async #start(
    instanceId: string,
    orchestration: unknown,
    input: unknown,
    options: StartOptions | { version: string | undefined },
    signal?: AbortSignal,
  ): Promise<StartReply> {
    if (typeof orchestration === 'object') await checkInput(orchestration, input)
    const text = startText(instanceId, orchestration, input, options)
    const outcome = await abortable(this.#native, signal, (ticket) => this.#native.start(`[${text}]`, ticket))
    const [reply] = JSON.parse(unwrap(outcome)) as StartReply[]
    if (reply === undefined) throw new HoldfastError('the engine did not answer the start', { code: 'INTERNAL' })
    return reply
  }

  /**
   * Waits for the end of an instance; follows continue-as-new. Rejects with {@link TimeoutError} when the time is over (30 s
   * unless told otherwise), and with the reason of a `signal` that is aborted: options stand in the place of the time limit or
   * after it.
   *
   * @example
   * await client.waitForOrchestration('order-17', { timeoutMs: 60_000, signal: request.signal })
   */
  async waitForOrchestration<O = unknown>(
    instanceId: string,
    timeoutMs?: number | WaitOptions,
    options?: AbortOptions,
  ): Promise<OrchestrationResult<O>> {
    const wait = waitOf(timeoutMs, options, WAIT_MS)
    return resultOf<O>(await this.waitForEnd(instanceId, wait.timeoutMs, wait.signal))
  }

  /** Waits for the end of an instance, 30 s by default, and gives its output; rejects when it failed. */
  async waitForOrchestrationTyped<O = unknown>(instanceId: string, timeoutMs?: number | WaitOptions, options?: AbortOptions): Promise<O> {
    const wait = waitOf(timeoutMs, options, WAIT_MS)
    const record = await this.waitForEnd(instanceId, wait.timeoutMs, wait.signal)
    const result = resultOf<O>(record)
    if (result.status !== 'Completed') {
      throw new HoldfastError(result.error || 'Orchestration failed', { code: record.error?.code ?? 'ORCHESTRATION_FAILED' })
    }
    return result.output as O
  }

  /** @internal The ended instance as the addon tells it. */
  async waitForEnd(instanceId: string, timeoutMs: number, signal?: AbortSignal): Promise<InstanceRecord> {
    const record = await this.pollForEnd(instanceId, timeoutMs, signal)
    if (record === null) {
      const message = `Operation timed out: instance '${instanceId}' did not end within ${timeoutMs} ms`
      throw new TimeoutError(message, { code: 'TIMEOUT', retryable: true })
    }
    return record
  }

  /** @internal The ended instance, or null when the time is over. */
  async pollForEnd(instanceId: string, timeoutMs: number, signal?: AbortSignal): Promise<InstanceRecord | null> {
    const id = checkInstanceId(instanceId)
    const limit = checkWhole(timeoutMs, 'timeoutMs', 0)
    const text = unwrap(await abortable(this.#native, signal, (ticket) => this.#native.wait(id, limit, ticket)))
    return text === null || text === undefined ? null : (JSON.parse(text) as InstanceRecord)
  }

  /**
   * Asks an instance to stop. `accepted` is false when there is none of this id or it has ended; what is accepted takes effect:
   * the instance never completes.
   */
  async cancelInstance(instanceId: string, reason = '', options?: AbortOptions): Promise<SendResult> {
    const id = checkInstanceId(instanceId)
    const text = String(reason)
    if (!text.isWellFormed() || text.includes('\0')) throw invalidArgument('reason must be well-formed Unicode without NUL')
    return await this.#send('cancel', id, '', encode(null, 'data'), text, { signal: signalOf(options) })
  }

  /** The same as `cancelInstance`. */
  async cancelOrchestration(instanceId: string, reason = '', options?: AbortOptions): Promise<SendResult> {
    return await this.cancelInstance(instanceId, reason, options)
  }

  /** Raises a one-shot event; one that nobody waits for yet is kept. */
  async raiseEvent<T = unknown>(
    instanceId: string,
    event: string | EventDefinition<T>,
    ...data: InputArguments<T, [options?: SendOptions]>
  ): Promise<SendResult> {
    const id = checkInstanceId(instanceId)
    const name = nameOf(event, 'event', 'event name')
    if (typeof event === 'object') await validated(event.schema, data[0], `data of event '${name}'`)
    return await this.#send('event', id, name, encode(data[0], `data of event '${name}'`), '', data[1])
  }

  /** Appends a message to a queue of an instance. */
  async enqueueEvent<T = unknown>(
    instanceId: string,
    queue: string | EventDefinition<T>,
    ...data: InputArguments<T, [options?: SendOptions]>
  ): Promise<SendResult> {
    const id = checkInstanceId(instanceId)
    const name = nameOf(queue, 'event', 'queue name')
    if (typeof queue === 'object') await validated(queue.schema, data[0], `message of queue '${name}'`)
    return await this.#send('queue', id, name, encode(data[0], `message of queue '${name}'`), '', data[1])
  }

  /** The same as `raiseEvent`. */
  async raiseEventTyped<T = unknown>(
    instanceId: string,
    event: string | EventDefinition<T>,
    ...data: InputArguments<T, [options?: SendOptions]>
  ): Promise<SendResult> {
    return await this.raiseEvent<T>(instanceId, event, ...data)
  }

  /** The same as `enqueueEvent`. */
  async enqueueEventTyped<T = unknown>(
    instanceId: string,
    queue: string | EventDefinition<T>,
    ...data: InputArguments<T, [options?: SendOptions]>
  ): Promise<SendResult> {
    return await this.enqueueEvent<T>(instanceId, queue, ...data)
  }

  async #send(kind: string, id: string, name: string, data: string, reason: string, options?: SendOptions): Promise<SendResult> {
    const key = keyOf(options)
    const head = `"kind":"${kind}","instance":${JSON.stringify(id)},"name":${JSON.stringify(name)}`
    const tail = key === undefined ? '' : `,"key":${JSON.stringify(key)}`
    const item = `{${head},"data":${data},"reason":${JSON.stringify(reason)}${tail}}`
    const outcome = await abortable(this.#native, signalOf(options), (ticket) => this.#native.send(item, ticket))
    const { accepted } = JSON.parse(unwrap(outcome)) as SendResult
    return { accepted }
  }
}

/** Refuses an input that the schema of a definition refuses. */
async function checkInput(orchestration: unknown, input: unknown): Promise<void> {
  if (typeof orchestration !== 'object' || orchestration === null) return
  const { input: schema, name } = orchestration as OrchestrationDefinition
  await validated(schema, input, `input of orchestration '${name}'`)
}

/** One start as the addon takes it. */
function startText(instanceId: string, orchestration: unknown, input: unknown, options: Omit<StartOptions, 'version'> & { version?: string | undefined }): string {
  if (typeof instanceId === 'object' && instanceId !== null && 'type' in instanceId) {
    throw invalidArgument('instance id must be a string, not a definition: the order is (instanceId, orchestration, input)')
  }
  const id = checkNewInstanceId(instanceId)
  const name = nameOf(orchestration, 'orchestration', 'orchestration name')
  const exact = options.version ?? (typeof orchestration === 'object' ? (orchestration as OrchestrationDefinition).version : undefined)
  if (exact !== undefined && exact !== null) checkVersion(exact)
  const { tag, delayMs, startAt } = options
  if (delayMs !== undefined && startAt !== undefined) throw invalidArgument('give delayMs or startAt, not both')
  const fixed = exact === undefined || exact === null ? '' : `,"version":${JSON.stringify(exact)}`
  const routed = tag === undefined ? '' : `,"tag":${JSON.stringify(checkName(tag, 'tag'))}`
  const delayed = delayMs === undefined ? '' : `,"delayMs":${checkWhole(delayMs, 'delayMs', 0)}`
  const at = timeOf(startAt, 'startAt')
  const from = at === undefined ? '' : `,"startAt":${at}`
  const head = `"id":${JSON.stringify(id)},"name":${JSON.stringify(name)}${fixed}${routed}${delayed}${from}`
  return `{${head},"input":${encode(input, `input of orchestration '${name}'`)}}`
}

/** Starts of one call to the addon: as many as fit in a commit or two, and far fewer characters than a string can have. */
const SLICE_ITEMS = 4096
const SLICE_CHARACTERS = 16 * 1024 * 1024

function* slices(texts: readonly string[]): Generator<string[]> {
  let slice: string[] = []
  let characters = 0
  for (const text of texts) {
    if (slice.length > 0 && (slice.length >= SLICE_ITEMS || characters + text.length > SLICE_CHARACTERS)) {
      yield slice
      slice = []
      characters = 0
    }
    slice.push(text)
    characters += text.length
  }
  if (slice.length > 0) yield slice
}
