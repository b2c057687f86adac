// Who is a process: a pid together with its start time, so that a number used again is not taken for the
// process that had it before, and whether a process is the PostgreSQL of a given data folder.
// Never signals anything.
import { execFileSync } from 'node:child_process'
import { readFileSync, readdirSync, readlinkSync, realpathSync } from 'node:fs'
import * as path from 'node:path'

/** A process that stays distinguishable after its pid is given to another one. */
export type ProcessId = { readonly pid: number; readonly start: string }

/** What the first lines of `postmaster.pid` say. */
export type Postmaster = { readonly pid: number; readonly socketFolder: string; readonly status: string }

/** The identity of a running process; undefined when it does not run (a zombie does not run). */
export function identify(pid: number): ProcessId | undefined {
  if (!Number.isInteger(pid) || pid <= 0) return undefined
  if (process.platform === 'linux') return identifyByProc(pid)
  try {
    const text = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
    return text === '' || text.startsWith('Z') ? undefined : { pid, start: text.replace(/^\S+\s+/, '') }
  } catch {
    return undefined
  }
}

/** Whether this very process still runs. */
export function isRunning(id: ProcessId): boolean {
  return identify(id.pid)?.start === id.start
}

/** The lock file of PostgreSQL in a data folder; undefined when there is none or it is cut short. */
export function readPostmaster(dataFolder: string): Postmaster | undefined {
  let lines: string[]
  try {
    lines = readFileSync(path.join(dataFolder, 'postmaster.pid'), 'utf8').split('\n')
  } catch {
    return undefined
  }
  const pid = Number.parseInt(lines[0] ?? '', 10)
  if (!Number.isInteger(pid)) return undefined
  return { pid, socketFolder: (lines[4] ?? '').trim(), status: (lines[7] ?? '').trim() }
}

/** Whether the process is a PostgreSQL server process that works in this data folder. */
export function isPostgresOn(pid: number, dataFolder: string): boolean {
  if (identify(pid) === undefined) return false
  const folder = realpathSync(dataFolder)
  if (process.platform === 'linux') {
    // A server process changes into its data folder, whatever its arguments were.
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === folder && /^(postgres|postmaster)/.test(readFileSync(`/proc/${pid}/comm`, 'utf8'))
    } catch {
      return false
    }
  }
  try {
    const text = execFileSync('ps', ['-o', 'command=', '-p', String(pid)], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    return text.includes('postgres') && (text.includes(folder) || text.includes(dataFolder))
  } catch {
    return false
  }
}

/** Server processes that still work in the folder, for instance backends whose postmaster was killed. */
export function postgresProcessesOn(dataFolder: string): number[] {
  if (process.platform !== 'linux') {
    const pid = readPostmaster(dataFolder)?.pid
    return pid !== undefined && isPostgresOn(pid, dataFolder) ? [pid] : []
  }
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => isPostgresOn(pid, dataFolder))
}

let bootId: string | undefined

function identifyByProc(pid: number): ProcessId | undefined {
  try {
    bootId ??= readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may itself contain spaces and parentheses; what follows the last one is regular.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const state = fields[0]
    const startTicks = fields[19]
    if (state === undefined || startTicks === undefined || state === 'Z' || state === 'X') return undefined
    return { pid, start: `${bootId}/${startTicks}` }
  } catch {
    return undefined
  }
}
