// The user the server runs as. PostgreSQL refuses to run as root, so under root it gets an unprivileged uid,
// and everything it must read has to be reachable by that uid through every parent folder.
// Never changes the mode of a folder it did not create.
import { chownSync, lstatSync, readdirSync, statSync } from 'node:fs'
import * as path from 'node:path'

/** The uid and gid of the server's processes. */
export type Account = { readonly uid: number; readonly gid: number }

/** `nobody` on every system where Node runs as root in practice; a number needs no entry in /etc/passwd. */
const NOBODY = 65534

/**
 * The account for the server: undefined (our own) unless we are root. A data folder that exists keeps its owner,
 * so that a folder made by a user stays that user's when root starts it.
 */
export function serverAccount(dataFolder: string | undefined, uid: number | undefined, gid: number | undefined): Account | undefined {
  if (process.getuid?.() !== 0) return undefined
  if (uid !== undefined) return { uid, gid: gid ?? uid }
  if (dataFolder !== undefined) {
    const stat = statSync(dataFolder, { throwIfNoEntry: false })
    if (stat !== undefined && stat.uid !== 0) return { uid: stat.uid, gid: stat.gid }
  }
  return { uid: NOBODY, gid: gid ?? NOBODY }
}

/** Whether the account can go through every parent of `file` and read it (a file) or go through it (a folder). */
export function canReach(account: Account | undefined, file: string, executable = false): boolean {
  if (account === undefined) return true
  let current = path.resolve(file)
  const stat = statSync(current, { throwIfNoEntry: false })
  if (stat === undefined || !allows(stat, account, stat.isDirectory() ? 1 : executable ? 5 : 4)) return false
  while (current !== path.dirname(current)) {
    current = path.dirname(current)
    if (!allows(statSync(current), account, 1)) return false
  }
  return true
}

/** Gives a folder and all it contains to the account. */
export function giveTo(account: Account | undefined, root: string): void {
  if (account === undefined) return
  if (lstatSync(root).isSymbolicLink()) return
  chownSync(root, account.uid, account.gid)
  if (!lstatSync(root).isDirectory()) return
  for (const name of readdirSync(root)) giveTo(account, path.join(root, name))
}

function allows(stat: { mode: number; uid: number; gid: number }, account: Account, bits: number): boolean {
  const shift = stat.uid === account.uid ? 6 : stat.gid === account.gid ? 3 : 0
  return ((stat.mode >> shift) & bits) === bits
}
