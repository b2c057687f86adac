// Schemas of the embedded server for `SqliteProvider`: one for each file that stands for a database, one for each
// database in memory. A file holds nothing but the name of its schema, so that removing it means an empty database.
// Schemas in memory carry the process that made them in their name; those of dead processes are dropped.
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import * as path from 'node:path'
import { fileURLToPath } from 'node:url'
import { EmbeddedPostgresError } from './failure.js'
import { identify } from './identity.js'
import { embeddedUrl } from './index.js'
import { runStatement } from './wire.js'

/** A schema on a running server. */
export type StandIn = {
  readonly url: string
  readonly schema: string
  /** Lets go of the server; a schema in memory is dropped before. */
  release(): Promise<void>
}

/** First line of a file that stands for a database. */
const MARK = 'holdfast stand-in for SQLite; the data is in the embedded PostgreSQL, schema '

/** Longest wait for the statement that drops or lists schemas. */
const LIMIT_MS = 30_000

/** The schema of a file, which is made with its parent folders when it is missing. */
export async function openFile(location: string): Promise<StandIn> {
  const schema = schemaOf(fileOf(location))
  const { url, release } = await embeddedUrl()
  return { url, schema, release }
}

/** An empty schema that ends with its provider, or with this process. */
export async function openMemory(): Promise<StandIn> {
  const { url, release } = await embeddedUrl()
  try {
    await sweep(url)
  } catch (error) {
    await release()
    throw error
  }
  const schema = `${prefix()}${process.pid}_${randomUUID().slice(0, 8)}`
  const drop = async (): Promise<void> => {
    try {
      await run(url, `drop schema if exists ${schema} cascade`)
    } finally {
      await release()
    }
  }
  return { url, schema, release: drop }
}

/** Pids mean something on one host only. */
function prefix(): string {
  return `memory_${createHash('sha256').update(hostname()).digest('hex').slice(0, 8)}_`
}

let swept: Promise<void> | undefined

/** Drops what dead processes left behind, once for each process. */
function sweep(url: string): Promise<void> {
  swept ??= (async () => {
    const { rows } = await run(url, `select nspname from pg_namespace where nspname like '${prefix().replaceAll('_', '\\_')}%'`)
    for (const [name] of rows) {
      const pid = Number(/_(\d+)_[0-9a-f]{8}$/.exec(name ?? '')?.[1])
      if (!Number.isInteger(pid) || pid === process.pid || identify(pid) !== undefined) continue
      await run(url, `drop schema if exists ${name ?? ''} cascade`)
    }
  })()
  swept.catch(() => (swept = undefined))
  return swept
}

async function run(url: string, statement: string): ReturnType<typeof runStatement> {
  const { hostname: sockets, pathname } = new URL(url)
  const socket = path.join(decodeURIComponent(sockets), '.s.PGSQL.5432')
  return await runStatement(socket, decodeURIComponent(pathname.slice(1)), statement, LIMIT_MS)
}

/** A bare path, or the path in a `sqlite:` or `file:` URL. */
function fileOf(location: string): string {
  if (location.startsWith('file:')) return fileURLToPath(location)
  const bare = location.replace(/^sqlite:(\/\/)?/, '').replace(/\?.*$/s, '')
  return path.resolve(bare)
}

function schemaOf(file: string): string {
  const fresh = `${MARK}sqlite_${randomUUID().replaceAll('-', '')}\n`
  try {
    mkdirSync(path.dirname(file), { recursive: true })
    if (!existsSync(file)) create(file, fresh)
  } catch (error) {
    throw failure(`Failed to create DB file: ${(error as Error).message}`, error)
  }
  let text: string
  try {
    text = readFileSync(file, 'utf8')
    // An empty file is an empty database.
    if (text === '') writeFileSync(file, (text = fresh))
  } catch (error) {
    throw failure(`Failed to open SQLite: ${(error as Error).message}`, error)
  }
  const schema = text.startsWith(MARK) ? text.slice(MARK.length).trim() : ''
  if (!/^sqlite_[0-9a-f]{32}$/.test(schema)) {
    throw failure(`Failed to open SQLite: ${file} is not a file that SqliteProvider made, and it does not read SQLite's format`)
  }
  return schema
}

/** Writes a file unless another process made it meanwhile. */
function create(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

function failure(message: string, cause?: unknown): EmbeddedPostgresError {
  return new EmbeddedPostgresError('EMBEDDED_FOLDER', message, cause)
}
