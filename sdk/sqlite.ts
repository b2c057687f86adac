/**
 * A stand-in for programs that were written for SQLite: a schema of its own on the embedded PostgreSQL. It reads and writes
 * no SQLite file.
 */
import { HoldfastError } from './errors.js'
import { invalidArgument, kindOf } from './ids.js'
import type { NativeProvider } from './native.js'
import type { JsPoolOptions, OptionsInForce } from './options.js'
import { type Address, PostgresProvider, connectTo } from './provider.js'

/** What `sdk/dev` gives. */
interface StandIn {
  url: string
  schema: string
  release(): Promise<void>
}

interface StandInModule {
  openFile(location: string): Promise<StandIn>
  openMemory(): Promise<StandIn>
}

/**
 * A database of development and tests under a file name or in memory, kept by the embedded PostgreSQL. For programs that
 * were written for SQLite; it needs the same server binaries as `PostgresProvider.connect()` without a URL and is not
 * there with `NODE_ENV=production`.
 *
 * @example
 * const provider = await SqliteProvider.inMemory()
 * const client = new Client(provider)
 * await provider.close()
 */
export class SqliteProvider extends PostgresProvider {
  /**
   * The database of a path or `sqlite:` URL. The file, made with its folders when it is missing, holds only the name of the
   * schema with the data; without the file the next `open` gives an empty database.
   */
  static async open(location: string): Promise<SqliteProvider> {
    if (typeof location !== 'string' || location === '') throw invalidArgument(`path must be a non-empty string, not ${kindOf(location)}`)
    if (/^(sqlite:(\/\/)?)?:memory:$/.test(location)) return await SqliteProvider.inMemory()
    return await opened((module) => module.openFile(location))
  }

  /** An empty database of its own, gone when the provider is closed or the process ends. */
  static async inMemory(): Promise<SqliteProvider> {
    return await opened((module) => module.openMemory())
  }

  /** @internal */
  static override make(native: NativeProvider, address: Address, schema: string, options: OptionsInForce<JsPoolOptions>): SqliteProvider {
    return new SqliteProvider(native, address, schema, options)
  }
}

async function opened(open: (module: StandInModule) => Promise<StandIn>): Promise<SqliteProvider> {
  if (process.env['NODE_ENV'] === 'production') {
    const message = 'Failed to open SQLite: SqliteProvider is for development and not there with NODE_ENV=production; use PostgresProvider.connect(url)'
    throw new HoldfastError(message, { code: 'NO_DATABASE_URL' })
  }
  // A computed name keeps bundlers from pulling the development part into production.
  const development = './dev/stand-in.js'
  let database: StandIn
  try {
    database = await open((await import(development)) as StandInModule)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    const code = (error as { code?: unknown }).code
    const text = message.startsWith('Failed to ') ? message : `Failed to open SQLite: SqliteProvider keeps its data in the embedded PostgreSQL, and ${message}`
    throw new HoldfastError(text, { code: typeof code === 'string' ? code : 'EMBEDDED_START_FAILED', cause: error })
  }
  const { url, schema, release } = database
  return await connectTo({ url, source: 'embedded', release }, schema, undefined, SqliteProvider.make)
}
