// Where things are kept: `.holdfast` beside the nearest package.json, or, when the server's user cannot get there
// (root in a private folder) or nobody can write there, a private folder of this project under the system's
// temporary folders. Folders are built under another name and renamed, so that a half-made one is never used.
import { createHash, randomBytes } from 'node:crypto'
import { accessSync, chmodSync, chownSync, constants, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, renameSync, rmSync, rmdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import * as path from 'node:path'
import { canReach, type Account } from './account.js'
import { EmbeddedPostgresError, systemCode } from './failure.js'
import { identify } from './identity.js'

/** A path of a unix socket holds about 104 bytes on macOS and 108 on Linux; `/.s.PGSQL.65535` takes 16 of them. */
const LONGEST_SOCKET_FOLDER = 80

/** The folder of the nearest package.json at or above `from`, or `from` itself. */
export function projectFolder(from: string = process.cwd()): string {
  for (let folder = realpathSync(from); ; folder = path.dirname(folder)) {
    if (existsSync(path.join(folder, 'package.json'))) return folder
    if (folder === path.dirname(folder)) return realpathSync(from)
  }
}

/** The folder for everything that outlives a server of this project, made when missing. */
export function homeFolder(project: string, account: Account | undefined): string {
  const inside = path.join(project, '.holdfast')
  if (usable(inside, account)) {
    if (!existsSync(path.join(inside, '.gitignore'))) writeFileSync(path.join(inside, '.gitignore'), '*\n')
    return inside
  }
  const name = `holdfast-${process.getuid?.() ?? 0}-${digest(project)}`
  for (const parent of ['/var/tmp', tmpdir()]) {
    const outside = path.join(parent, name)
    if (existsSync(parent) && usable(outside, account)) return outside
  }
  throw new EmbeddedPostgresError('EMBEDDED_FOLDER', `no folder for the embedded server: ${inside} cannot be written${account === undefined ? '' : ` or not be reached by uid ${account.uid}`}; give a dataDir`)
}

/** A short text for a path: the same path gives the same text. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 10)
}

/** The file of a temporary folder that says which process made it. */
export const OWNER = 'owner.json'

/** A new folder for a temporary server, or for work that is soon removed. */
export function temporaryFolder(account: Account | undefined): string {
  const folder = mkdtempSync(path.join(socketParent(account), 'holdfast-'))
  chmodSync(folder, 0o711) // the server's user passes through it; the folders inside are private
  writeFileSync(path.join(folder, OWNER), JSON.stringify(identify(process.pid)))
  return realpathSync(folder)
}

/**
 * The name of the private folder of a server's sockets. It is the same for the same server folder, so that a URL
 * stays valid after a restart.
 */
export function socketFolderName(serverFolder: string, account: Account | undefined): string {
  return path.join(socketParent(account), `holdfast-${process.getuid?.() ?? 0}-${digest(serverFolder)}`)
}

/** Makes the folder of that name, or another one when somebody else has taken it. It belongs to the account. */
export function makeSocketFolder(wanted: string, account: Account | undefined): string {
  let folder = wanted
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw error
    const stat = lstatSync(folder)
    const owners = [process.getuid?.(), account?.uid]
    if (!stat.isDirectory() || (stat.mode & 0o777) !== 0o700 || !owners.includes(stat.uid)) folder = mkdtempSync(path.join(path.dirname(wanted), 'holdfast-s'))
  }
  if (account !== undefined) chownSync(folder, account.uid, account.gid)
  return folder
}

/** Makes a folder under another name and renames it. Whoever is first wins; the other's work is dropped. */
export async function buildFolder(target: string, build: (draft: string) => Promise<void>): Promise<void> {
  if (existsSync(target)) return
  mkdirSync(path.dirname(target), { recursive: true })
  removeAbandoned(target)
  const draft = `${target}.new-${process.pid}-${randomBytes(4).toString('hex')}`
  try {
    await build(draft)
    renameSync(draft, target)
  } catch (error) {
    if (!existsSync(target)) throw error
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** Removes what killed builders of the same folder left. */
function removeAbandoned(target: string): void {
  const prefix = `${path.basename(target)}.new-`
  for (const name of readdirSync(path.dirname(target))) {
    const builder = name.startsWith(prefix) ? Number.parseInt(name.slice(prefix.length), 10) : undefined
    if (builder !== undefined && identify(builder) === undefined) rmSync(path.join(path.dirname(target), name), { recursive: true, force: true })
  }
}

/** The folder that holds temporary folders and sockets: short, plainly named, open to the account. */
export function socketParent(account: Account | undefined): string {
  const wanted = tmpdir()
  // The list of socket folders has its own quoting in the server's configuration: avoid it.
  const fits = /^[\w./+-]+$/.test(wanted) && Buffer.byteLength(wanted) + '/holdfast-4294967295-0123456789'.length <= LONGEST_SOCKET_FOLDER
  return fits && existsSync(wanted) && canReach(account, wanted) ? wanted : '/tmp'
}

/** Ours to write in, and the server's user gets through. Outside the project it must be our own, never a link. */
function usable(folder: string, account: Account | undefined): boolean {
  try {
    mkdirSync(folder, { recursive: true })
    const stat = lstatSync(folder)
    if (path.basename(folder) !== '.holdfast' && (!stat.isDirectory() || stat.uid !== process.getuid?.())) return false
    accessSync(folder, constants.W_OK)
    if (canReach(account, folder)) return true
    if (readdirSync(folder).length === 0) rmdirSync(folder)
  } catch {
    // Not ours, or read-only: not usable.
  }
  return false
}
