// Removes what temporary servers left when everything was killed at once, the watchdog too: their folders, and
// a PostgreSQL that provably runs in such a folder. Touches only folders of this user that were made here.
import { lstatSync, readFileSync, readdirSync, rmSync } from 'node:fs'
import * as path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Account } from './account.js'
import { OWNER, socketParent } from './folder.js'
import { identify, isPostgresOn, isRunning, readPostmaster, type ProcessId } from './identity.js'
import { readRunning } from './server.js'

/** A folder that does not say whose it is belongs to a process that was killed while it made or removed it. */
const NAMELESS_MS = 10 * 60_000

/** Looks for abandoned temporary servers and ends them. What cannot be judged is left alone. */
export async function sweepTemporary(account: Account | undefined): Promise<void> {
  const parent = socketParent(account)
  for (const name of readdirSync(parent)) {
    if (!/^holdfast-[A-Za-z0-9]{6}$/.test(name)) continue
    const folder = path.join(parent, name)
    try {
      if (isAbandoned(folder)) await remove(folder)
    } catch {
      // It is being removed by another process, or is not ours to judge.
    }
  }
}

function isAbandoned(folder: string): boolean {
  const stat = lstatSync(folder)
  if (!stat.isDirectory() || stat.uid !== process.getuid?.()) return false
  const owner = readRunning(folder)?.watchdog ?? readOwner(folder)
  return owner === undefined ? Date.now() - stat.mtimeMs > NAMELESS_MS : !isRunning(owner)
}

async function remove(folder: string): Promise<void> {
  const data = path.join(folder, 'data')
  const postmaster = readPostmaster(data)
  const server = postmaster === undefined ? undefined : identify(postmaster.pid)
  if (server !== undefined && isPostgresOn(server.pid, data)) {
    process.kill(server.pid, 'SIGQUIT') // its data is about to go: nothing to save
    for (const end = performance.now() + 5_000; isRunning(server) && performance.now() < end;) await delay(10)
  }
  // What says whose it is goes last, so that a sweep that is cut short is finished by the next one.
  const parts = readdirSync(folder).filter((name) => name !== OWNER)
  for (const part of [...parts, OWNER, '']) rmSync(path.join(folder, part), { recursive: true, force: true, maxRetries: 3 })
}

/** The process that made the folder, before a watchdog took over. */
function readOwner(folder: string): ProcessId | undefined {
  try {
    return JSON.parse(readFileSync(path.join(folder, OWNER), 'utf8')) as ProcessId
  } catch {
    return undefined
  }
}
