// A lock between processes in a folder that survives kill -9: numbered tickets. Whoever creates the highest
// ticket holds the lock; a ticket is created with link(2), which exactly one process wins, and only the holder
// of a higher ticket deletes lower ones. So a dead holder is passed by taking the next number, and nobody
// ever deletes a file that might meanwhile belong to somebody else.
import { randomBytes } from 'node:crypto'
import { linkSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import * as path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { EmbeddedPostgresError, systemCode } from './failure.js'
import { identify, isRunning, type ProcessId } from './identity.js'

/** A held lock. */
export type HeldLock = { release(): void }

const POLL_MS = 25

/** Takes the lock of a folder, waiting while a running process holds it, at most `waitMs`. */
export async function acquireLock(folder: string, waitMs: number): Promise<HeldLock> {
  mkdirSync(folder, { recursive: true })
  const me = identify(process.pid)
  if (me === undefined) throw new EmbeddedPostgresError('EMBEDDED_START_FAILED', 'this process cannot read its own start time')
  const end = performance.now() + waitMs
  for (;;) {
    const held = tryLock(folder, { ...me, nonce: randomBytes(8).toString('hex') })
    if (held !== undefined) return held
    if (performance.now() > end) {
      const holder = readTicket(folder, highest(folder))
      throw new EmbeddedPostgresError('EMBEDDED_IN_USE', `another process (pid ${holder?.pid ?? 'unknown'}) has been starting the server in ${path.dirname(folder)} for more than ${waitMs} ms`)
    }
    await delay(POLL_MS)
  }
}

type Ticket = ProcessId & { readonly nonce: string }

function tryLock(folder: string, ticket: Ticket): HeldLock | undefined {
  const top = highest(folder)
  const holder = readTicket(folder, top)
  if (holder !== undefined && isRunning(holder)) return undefined
  const mine = top + 1
  const draft = path.join(folder, `draft-${ticket.nonce}`)
  writeFileSync(draft, JSON.stringify(ticket))
  try {
    linkSync(draft, path.join(folder, String(mine)))
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return undefined
    throw error
  } finally {
    rmSync(draft, { force: true })
  }
  // A list read before a release may have led to a number that was already passed.
  if (highest(folder) !== mine) {
    rmSync(path.join(folder, String(mine)), { force: true })
    return undefined
  }
  for (const name of readdirSync(folder)) if (/^\d+$/.test(name) && Number(name) < mine) rmSync(path.join(folder, name), { force: true })
  return { release: () => release(folder, mine, ticket.nonce) }
}

/** A released ticket stays, without a holder, so that the numbers never fall. */
function release(folder: string, number: number, nonce: string): void {
  const draft = path.join(folder, `draft-${nonce}`)
  try {
    writeFileSync(draft, '{}')
    renameSync(draft, path.join(folder, String(number)))
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error // the folder itself is gone: nothing is locked any more
  }
}

function highest(folder: string): number {
  return readdirSync(folder).reduce((top, name) => (/^\d+$/.test(name) ? Math.max(top, Number(name)) : top), 0)
}

function readTicket(folder: string, number: number): Ticket | undefined {
  try {
    const ticket = JSON.parse(readFileSync(path.join(folder, String(number)), 'utf8')) as Partial<Ticket>
    return typeof ticket.pid === 'number' && typeof ticket.start === 'string' ? (ticket as Ticket) : undefined
  } catch {
    return undefined
  }
}
