// A real PostgreSQL for development and tests, started on demand: `EmbeddedPostgres` for a server of one's own,
// `embeddedUrl` for the server of the project that PostgresProvider.connect() uses without a URL.
// Nothing happens at import; never meant for production data.
import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync } from 'node:fs'
import * as path from 'node:path'
import { canReach, serverAccount } from './account.js'
import { EmbeddedPostgresError } from './failure.js'
import { homeFolder, projectFolder, temporaryFolder } from './folder.js'
import { keepMembership, type Keeper } from './keeper.js'
import { joinServer, type ServerPlan } from './server.js'
import { sweepTemporary } from './sweep.js'
import { readPassword } from './template.js'
import { runStatement } from './wire.js'

export { EmbeddedPostgresError, type EmbeddedPostgresErrorCode } from './failure.js'

/** Options of `EmbeddedPostgres.start`. */
export type EmbeddedPostgresOptions = {
  /** The folder of the server: its data, log and state. Default: `.holdfast/postgres` of the project when persistent, else a new temporary folder. */
  dataDir?: string
  /** Keep the data after the last user has gone. Default: true when `dataDir` is given, else false. */
  persistent?: boolean
  /** Also listen on this port of 127.0.0.1, with a password; 0 takes a free one. Default: a private unix socket only. */
  port?: number
  /** The folder with `postgres` and `initdb`. Default: HOLDFAST_PG_BIN, the npm package of this platform, pg_config, the system's folders. */
  binDir?: string
  /** The database of the URL, made when missing. Default: `postgres`. */
  database?: string
  /** Server settings, for example `{ log_min_duration_statement: 100 }`. */
  settings?: Readonly<Record<string, string | number | boolean>>
  /** Under root: the user id the server runs as. Default: the owner of an existing data folder, else 65534. */
  uid?: number
  /** Under root: the group id the server runs as. Default: as `uid`. */
  gid?: number
}

/** Settings that this module decides, because the rest depends on them. */
const OWN_SETTINGS = new Set(['listen_addresses', 'port', 'unix_socket_directories', 'unix_socket_permissions', 'data_directory', 'logging_collector', 'hba_file', 'external_pid_file'])

/**
 * A running server. It ends when the last process that uses it stops it, exits or is killed.
 *
 * @example
 * await using server = await EmbeddedPostgres.start()
 * const provider = await PostgresProvider.connect(server.url)
 */
export class EmbeddedPostgres implements AsyncDisposable {
  /** The connection URL, for Holdfast and for every PostgreSQL client. */
  readonly url: string
  /** The server's version, for example `18.4`. */
  readonly version: string
  /** The folder with the server's data and log. */
  readonly dataDir: string
  readonly #keeper: Keeper

  private constructor(url: string, version: string, dataDir: string, keeper: Keeper) {
    this.url = url
    this.version = version
    this.dataDir = dataDir
    this.#keeper = keeper
  }

  /**
   * Starts a server, or joins the one that runs on the same persistent folder.
   *
   * @example
   * const server = await EmbeddedPostgres.start({ persistent: true, database: 'shop' })
   */
  static async start(options: EmbeddedPostgresOptions = {}): Promise<EmbeddedPostgres> {
    if (process.platform === 'win32') throw new EmbeddedPostgresError('EMBEDDED_NO_BINARIES', 'the embedded server needs unix sockets and does not run on Windows: set HOLDFAST_DATABASE_URL to a database')
    const database = checkDatabase(options.database)
    const plan = makePlan(options)
    if (plan.temporary) await sweepTemporary(plan.account)
    const member = await joinServer(plan).catch((error: unknown) => {
      if (plan.temporary) discard(plan.folder)
      throw error
    })
    const keeper = keepMembership(plan, member)
    try {
      const { running } = member
      const socket = path.join(running.sockets, `.s.PGSQL.${running.port ?? 5432}`)
      const version = await ensureDatabase(socket, database)
      const password = running.port === undefined ? '' : readPassword(path.join(plan.folder, 'data'))
      const host = running.port === undefined ? encodeURIComponent(running.sockets) : `127.0.0.1:${running.port}`
      const url = `postgresql://postgres${password === '' ? '' : `:${password}`}@${host}/${encodeURIComponent(database)}`
      keeper.settle()
      return new EmbeddedPostgres(url, version, plan.folder, keeper)
    } catch (error) {
      await keeper.stop()
      throw error
    }
  }

  /** Ends this use; when it was the last one, waits until the server has stopped. Calling it again changes nothing. */
  stop(): Promise<void> {
    return this.#keeper.stop()
  }

  /** Ends this use without waiting for the server, which goes on for a moment: a process started next finds it running. */
  release(): Promise<void> {
    return this.#keeper.release()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }
}

/**
 * The URL of the project's own server (`.holdfast/postgres` beside the nearest package.json), started when it does
 * not run. All processes of the project share it. It holds no process alive; `release` ends this use early.
 *
 * @example
 * const { url, release } = await embeddedUrl()
 */
export async function embeddedUrl(): Promise<{ url: string; release(): Promise<void> }> {
  const server = await EmbeddedPostgres.start({ persistent: true })
  return { url: server.url, release: () => server.release() }
}

function makePlan(options: EmbeddedPostgresOptions): ServerPlan {
  const { port, dataDir } = options
  if (port !== undefined && (!Number.isInteger(port) || port < 0 || port > 65535)) {
    throw new EmbeddedPostgresError('EMBEDDED_OPTION', `option port must be a whole number from 0 to 65535, got ${String(port)}`)
  }
  const settings = checkSettings(options.settings ?? {})
  const project = projectFolder()
  const persistent = options.persistent ?? dataDir !== undefined
  const given = dataDir === undefined ? undefined : path.resolve(dataDir)
  const account = serverAccount(given === undefined ? undefined : path.join(given, 'data'), options.uid, options.gid)
  const home = homeFolder(project, account)
  const folder = given === undefined ? (persistent ? path.join(home, 'postgres') : temporaryFolder(account)) : checkFolder(given, persistent)
  mkdirSync(folder, { recursive: true })
  if (!canReach(account, folder)) {
    throw new EmbeddedPostgresError('EMBEDDED_FOLDER', `the server runs as uid ${account?.uid}, which cannot reach ${folder}: choose a dataDir whose parent folders are open to it`)
  }
  return {
    project, home, folder: realpathSync(folder), temporary: !persistent, binDir: options.binDir, port, settings,
    account: persistent && given === undefined ? serverAccount(path.join(folder, 'data'), options.uid, options.gid) : account,
  }
}

/** Removes a temporary folder; its watchdog may be doing the same. */
function discard(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  } catch {
    // The next temporary start sweeps what is left.
  }
}

/** A given folder must be new, empty or one of ours; a temporary one is removed at the end, so it must be new or empty. */
function checkFolder(folder: string, persistent: boolean): string {
  if (!existsSync(folder)) return folder
  const names = readdirSync(folder)
  if (names.length === 0) return folder
  if (!persistent) throw new EmbeddedPostgresError('EMBEDDED_FOLDER', `${folder} is not empty, and with persistent: false it would be removed at the end: choose a new folder`)
  if (names.includes('PG_VERSION')) throw new EmbeddedPostgresError('EMBEDDED_FOLDER', `${folder} is itself a PostgreSQL data folder that this module did not make: choose another dataDir`)
  if (!names.includes('locks')) throw new EmbeddedPostgresError('EMBEDDED_FOLDER', `${folder} holds other files: choose an empty folder as dataDir`)
  return folder
}

function checkDatabase(name = 'postgres'): string {
  if (name === '' || name.includes('\0') || Buffer.byteLength(name) > 63) {
    throw new EmbeddedPostgresError('EMBEDDED_OPTION', 'option database must have 1 to 63 bytes and no NUL character')
  }
  return name
}

function checkSettings(settings: Readonly<Record<string, string | number | boolean>>): Record<string, string> {
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => {
    if (!/^[a-z_][a-z0-9_.]*$/i.test(name)) throw new EmbeddedPostgresError('EMBEDDED_OPTION', `option settings: ${JSON.stringify(name)} is not the name of a setting`)
    if (OWN_SETTINGS.has(name.toLowerCase())) throw new EmbeddedPostgresError('EMBEDDED_OPTION', `option settings: ${name} is decided by the embedded server`)
    return [name.toLowerCase(), typeof value === 'boolean' ? (value ? 'on' : 'off') : String(value)]
  }))
}

/** Makes the database when it is missing and returns the server's version. */
async function ensureDatabase(socket: string, database: string): Promise<string> {
  const literal = `'${database.replaceAll("'", "''")}'`
  const { rows, version } = await runStatement(socket, 'postgres', `set standard_conforming_strings = on; select 1 from pg_database where datname = ${literal}`, 30_000)
  if (rows.length > 0) return version
  try {
    await runStatement(socket, 'postgres', `create database "${database.replaceAll('"', '""')}"`, 60_000)
  } catch (error) {
    // Another starter may have made it at the same time: 42P04 beforehand, 23505 in the middle.
    if (!/\((?:42P04|23505)\)/.test((error as Error).message)) throw error
  }
  return version
}
