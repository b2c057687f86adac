/**
 * Providers: where the state lives. The only one is PostgreSQL: given by URL, by the environment, or, in development only, a
 * server that this package starts itself.
 */
import { type EntraOptions, entraTarget } from './entra.js'
import { HoldfastError, errorOfCode } from './errors.js'
import { EventEmission, type EventKind, type EventListener } from './events.js'
import { checkName, invalidArgument, kindOf } from './ids.js'
import { type NativeProvider, binding } from './native.js'
import type { NativePoolOptions } from './option-check.js'
import type { JsPoolOptions, OptionsInForce, PoolOptions } from './options.js'
import { type Resolved, resolvePoolOptions } from './options-in-force.js'
import { unwrap } from './unwrap.js'

/** Where the URL of a provider came from. */
export type ProviderSource = 'argument' | 'HOLDFAST_DATABASE_URL' | 'DATABASE_URL' | 'embedded'

/** Numbers of a connection pool at one moment; what is counted is counted since the pool was made. */
export interface PoolStats {
  /** The URL without credentials. */
  url: string
  /** Connections at most. */
  max: number
  /** Connections open: in use, being opened, or idle. */
  total: number
  /** Connections unused. */
  idle: number
  /** Callers waiting for a connection. */
  waiting: number
  /** Connections handed out. */
  acquires: number
  /** Half of the last 512 callers had their connection within this time, in ms. */
  acquireWaitP50Ms: number
  /** 95 of 100 of them did, in ms. */
  acquireWaitP95Ms: number
  /** Callers refused with {@link SaturatedError}. */
  saturationRejections: number
  /** Refusals by a server that has no connection left. */
  capacityRejections: number
  /** Callers refused with {@link CircuitOpenError}. */
  breakerRejections: number
  /** Whether the breaker is open. */
  breakerOpen: boolean
  /** Connections that could not be opened, or were lost in use. */
  connectionErrors: number
  /** Statements that the server refused. */
  queryErrors: number
  /** Operations run again after a lost connection. */
  retries: number
  /** The most connections open at once. */
  peakTotal: number
  /** The most callers waiting at once. */
  peakWaiting: number
}

/** What a provider tells about itself. */
export interface ProviderStats {
  /** The connection pool, shared by all providers of this process with the same URL and options. */
  pool: PoolStats
  /** What this provider's clients and runtimes did, for people and dashboards; names may come and go. */
  counters: Record<string, number>
}

/** Schema of the tables unless another is named. */
const DEFAULT_SCHEMA = 'holdfast'

/** PostgreSQL cuts longer names. */
const MAX_SCHEMA_BYTES = 63

/** Key of the native side; shared by both copies of this package. */
const NATIVE = Symbol.for('holdfast.native')

/** Providers that are open, of both copies of this package; one that nobody holds any more is no reason to keep it. */
const OPEN: Set<WeakRef<PostgresProvider>> = ((globalThis as Record<symbol, unknown>)[Symbol.for('holdfast.providers')] ??=
  new Set()) as Set<WeakRef<PostgresProvider>>

/** What `sdk/dev` gives: a running server and how to let go of it. */
interface EmbeddedServer {
  url: string
  release(): Promise<void>
}

interface DevModule {
  embeddedUrl(): Promise<EmbeddedServer>
}

/** Where the database is, and how to let go of it. */
export interface Address {
  url: string
  source: ProviderSource
  release: () => Promise<void>
}

/**
 * A connection to PostgreSQL, shared by clients and runtimes.
 *
 * @example
 * const provider = await PostgresProvider.connect(process.env.DATABASE_URL)
 * const client = new Client(provider)
 * await provider.close()
 */
export class PostgresProvider {
  /** Where the URL came from. */
  readonly source: ProviderSource
  /** Schema of the tables. */
  readonly schema: string
  readonly #native: NativeProvider
  readonly #options: OptionsInForce<JsPoolOptions>
  readonly #release: () => Promise<void>
  readonly #events: EventEmission
  readonly #reference: WeakRef<PostgresProvider>
  #closing: Promise<void> | undefined

  /** @internal */
  protected constructor(native: NativeProvider, address: Address, schema: string, options: OptionsInForce<JsPoolOptions>) {
    if (typeof native !== 'object' || native === null || typeof native.stats !== 'function') {
      throw invalidArgument('a PostgresProvider is not made with new: use await PostgresProvider.connect(url)')
    }
    this.#native = native
    this.#events = new EventEmission(native)
    this.#options = options
    this.source = address.source
    this.schema = schema
    this.#release = address.release
    this.#reference = new WeakRef(this)
    for (const other of OPEN) if (other.deref() === undefined) OPEN.delete(other)
    OPEN.add(this.#reference)
  }

  /**
   * Connects and brings the schema `holdfast` up to date. Without a URL it takes `HOLDFAST_DATABASE_URL`, then
   * `DATABASE_URL`, then starts a PostgreSQL of its own (never with `NODE_ENV=production`); `source` says which.
   */
  static async connect(url?: string, options?: PoolOptions): Promise<PostgresProvider> {
    return await open(url, DEFAULT_SCHEMA, options)
  }

  /** The same in a schema of another name, which is made when it is missing. */
  static async connectWithSchema(url: string | undefined, schema: string, options?: PoolOptions): Promise<PostgresProvider> {
    return await open(url, checkName(schema, 'schema', MAX_SCHEMA_BYTES), options)
  }

  /**
   * Connects with tokens instead of a password, as Microsoft Entra wants it: `options.getToken` gives one, now and each time
   * before the last one ends. What fetches tokens is yours, such as `@azure/identity`. TLS is required unless `sslmode` says less.
   *
   * @example
   * const credential = new DefaultAzureCredential()
   * const provider = await PostgresProvider.connectWithEntra('app.postgres.database.azure.com', 5432, 'main', 'app@example.org', {
   *   getToken: (audience) => credential.getToken(audience),
   * })
   */
  static async connectWithEntra(host: string, port: number, database: string, user: string, options?: EntraOptions): Promise<PostgresProvider> {
    return await openWithTokens('Entra', { host, port, database, user }, DEFAULT_SCHEMA, options)
  }

  /** The same in a schema of another name. */
  static async connectWithSchemaAndEntra(
    host: string,
    port: number,
    database: string,
    user: string,
    schema: string,
    options?: EntraOptions,
  ): Promise<PostgresProvider> {
    return await openWithTokens('schema and Entra', { host, port, database, user }, checkName(schema, 'schema', MAX_SCHEMA_BYTES), options)
  }

  /**
   * Every option with its value in force and where it comes from; a URL without its password.
   *
   * @example
   * provider.options().maxClients // { value: 8, source: 'default' }
   */
  options(): OptionsInForce<JsPoolOptions> {
    return this.#options
  }

  /** Numbers of the pool and of the engine. */
  stats(): ProviderStats {
    return JSON.parse(this.#native.stats()) as ProviderStats
  }

  /**
   * Hears what happens to this provider, its pool and its runtimes: `'event'` everything, `'warning'` what somebody may
   * have to act on, `'hub'` how the listener for work of other processes stands, at once and at every change. Listening
   * keeps no process alive; a listener that throws is reported by `process.emitWarning` and stops no other.
   * docs/events.md lists the names.
   *
   * @example
   * provider.on('warning', ({ name, message }) => log.warn({ name }, message))
   */
  on(kind: EventKind, listener: EventListener): this {
    this.#events.on(kind, listener)
    return this
  }

  /** Ends what {@link PostgresProvider.on} began, for this listener. */
  off(kind: EventKind, listener: EventListener): this {
    this.#events.off(kind, listener)
    return this
  }

  /**
   * Makes sure that a connection is open and answers, so that the first real call pays for neither the connecting nor a
   * database that was asleep.
   *
   * @example
   * await provider.warm() // before the server accepts requests
   */
  async warm(): Promise<void> {
    unwrap(await this.#native.warm())
  }

  /**
   * Proves that the database gives a connection of its own, past a pooler, as listening for work of other processes needs
   * one; it is closed again. Rejects with {@link DirectSessionCapacityError} when the database is full, and with
   * `INVALID_URL` when no way past the pooler is known.
   *
   * @example
   * await provider.probeDirectSession().catch((error) => log.warn(error, 'other processes are heard late'))
   */
  async probeDirectSession(): Promise<void> {
    unwrap(await this.#native.probeDirectSession())
  }

  /** Gives up this share of the pool; the last one closes it. Closing twice is closing once. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    try {
      unwrap(await this.#native.close())
    } finally {
      this.#events.close()
      OPEN.delete(this.#reference)
      await this.#release()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** @internal */
  static make(native: NativeProvider, address: Address, schema: string, options: OptionsInForce<JsPoolOptions>): PostgresProvider {
    return new PostgresProvider(native, address, schema, options)
  }

  /** @internal The native side, for clients and runtimes. */
  get [NATIVE](): NativeProvider {
    return this.#native
  }

}

/**
 * Closes every provider of this process, and every pool and listening connection with them, whoever opened it: for the end
 * of a process or a test suite. Shut runtimes down first. Failures are reported together as an `AggregateError`, after
 * everything was tried.
 *
 * @example
 * after(() => closeAll())
 */
export async function closeAll(): Promise<void> {
  const providers = [...OPEN].flatMap((reference) => reference.deref() ?? [])
  const ends = await Promise.allSettled(providers.map((provider) => provider.close()))
  const native = binding().JsPostgresProvider.closeAll()
  ends.push(...(await Promise.allSettled([native.then((outcome) => void unwrap(outcome))])))
  const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []))
  if (failures.length > 0) throw new AggregateError(failures, 'not everything could be closed')
}

/** The native side of a provider. */
export function nativeOf(provider: PostgresProvider): NativeProvider {
  if (typeof provider !== 'object' || provider === null || !(NATIVE in provider)) {
    if (typeof (provider as { then?: unknown } | null | undefined)?.then === 'function') {
      throw invalidArgument('provider is a promise: write await before PostgresProvider.connect(...), or before the variable that holds it')
    }
    if (typeof provider === 'string') throw invalidArgument('provider is a string: pass await PostgresProvider.connect(url) instead of the URL')
    throw invalidArgument(`provider must be a PostgresProvider, not ${kindOf(provider)}`)
  }
  return provider[NATIVE]
}

async function open(url: string | undefined, schema: string, options: PoolOptions | undefined): Promise<PostgresProvider> {
  const resolved = resolvePoolOptions(options)
  return await connectTo(await addressOf(url), schema, resolved, PostgresProvider.make)
}

/** Connects to an address, which is let go of when that fails; `make` makes the provider. */
export async function connectTo<P extends PostgresProvider>(
  address: Address,
  schema: string,
  options: Resolved<NativePoolOptions, JsPoolOptions> = resolvePoolOptions(undefined),
  make: (native: NativeProvider, address: Address, schema: string, options: OptionsInForce<JsPoolOptions>) => P,
): Promise<P> {
  try {
    return make(unwrap(await binding().JsPostgresProvider.connect(address.url, schema, options.given)), address, schema, options.shown)
  } catch (error) {
    await address.release()
    throw error instanceof HoldfastError ? prefixed(error) : error
  }
}

/** The same error behind the words that every failed connect begins with. */
function prefixed(error: HoldfastError): HoldfastError {
  const { code, retryable, retryAfterMs } = error
  return errorOfCode(`Failed to connect to PostgreSQL: ${error.message}`, { code, retryable, retryAfterMs, cause: error })
}

async function openWithTokens(
  how: string,
  place: { host: string; port: number; database: string; user: string },
  schema: string,
  options: EntraOptions | undefined,
): Promise<PostgresProvider> {
  const target = await entraTarget(how, place, options)
  let stop = (): void => {}
  const address: Address = { url: target.url, source: 'argument', release: async () => stop() }
  const provider = await connectTo(address, schema, resolvePoolOptions(target.pool), PostgresProvider.make)
  stop = target.renew((token) => provider[NATIVE].setPassword(token))
  return provider
}

const nothing = async (): Promise<void> => {}

async function addressOf(url: string | undefined): Promise<Address> {
  if (url !== undefined && url !== null) {
    if (typeof url !== 'string' || url.trim() === '') throw invalidArgument('url must be a non-empty string such as postgres://host/database')
    return { url, source: 'argument', release: nothing }
  }
  for (const source of ['HOLDFAST_DATABASE_URL', 'DATABASE_URL'] as const) {
    const found = process.env[source]?.trim()
    if (found !== undefined && found !== '') return { url: found, source, release: nothing }
  }
  if (process.env['NODE_ENV'] === 'production') {
    const message =
      'no database URL: give PostgresProvider.connect() one, or set HOLDFAST_DATABASE_URL or DATABASE_URL; ' +
      'the embedded server is for development and is not started with NODE_ENV=production'
    throw new HoldfastError(message, { code: 'NO_DATABASE_URL' })
  }
  // A computed name keeps bundlers from pulling the development part into production.
  const development = './dev/index.js'
  const { embeddedUrl } = (await import(development)) as DevModule
  const server = await embeddedUrl()
  process.stderr.write('holdfast: no database URL given, using the embedded PostgreSQL server (development only)\n')
  return { url: server.url, source: 'embedded', release: () => server.release() }
}
