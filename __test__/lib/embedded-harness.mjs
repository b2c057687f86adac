// What the tests of the embedded server share: scratch projects, users in processes of their own, and the truth
// about processes read from the system, not from the module under test.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, readlinkSync, rmSync, symlinkSync, writeFileSync, chmodSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'

export const root = fileURLToPath(new URL('../..', import.meta.url))

/** A project folder of its own, with the server package reachable as an installed one; removed after the test. */
export function scratchProject(t, { mode = 0o755, fresh = false } = {}) {
  const folder = mkdtempSync('/tmp/hf-project-')
  chmodSync(folder, mode)
  writeFileSync(path.join(folder, 'package.json'), '{"name":"scratch"}')
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'))
  // The template of a data folder takes a second and a half to make: share this project's.
  mkdirSync(path.join(folder, '.holdfast'))
  mkdirSync(path.join(root, '.holdfast/cache'), { recursive: true })
  if (!fresh) symlinkSync(path.join(root, '.holdfast/cache'), path.join(folder, '.holdfast/cache'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Starts a user process in a project and waits for its line. The process is killed after the test. */
export async function startUser(t, cwd, options = {}, env = {}) {
  const user = spawnUser(t, cwd, options, env)
  const { error, ...server } = await user.line
  if (error !== undefined) throw new Error(`the user has no server: ${error}`)
  return { ...server, child: user.child, kill: user.kill, exited: user.exited }
}

/** Starts a user process without waiting for it. */
export function spawnUser(t, cwd, options = {}, env = {}) {
  const child = spawn(process.execPath, [path.join(root, '__test__/lib/embedded-user.mjs'), JSON.stringify(options)], { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const line = new Promise((resolve) => createInterface({ input: child.stdout }).once('line', (text) => resolve(JSON.parse(text))).once('close', () => resolve({ error: 'ended without a word' })))
  const kill = async () => {
    child.kill('SIGKILL')
    await exited
  }
  t.after(kill)
  return { child, line, kill, exited }
}

/** Resolves when the condition holds; fails with its description after the limit. */
export async function until(what, condition, limitMs = 15_000) {
  for (const end = performance.now() + limitMs; ;) {
    const value = await condition()
    if (value) return value
    if (performance.now() > end) throw new Error(`not within ${limitMs} ms: ${what}`)
    await delay(20)
  }
}

/** The rows of one statement. */
export async function sql(url, text, values) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text, values)).rows
  } finally {
    await client.end()
  }
}

/** The pid of the postmaster of a server folder, from its lock file. */
export function postmasterPid(folder) {
  try {
    return Number.parseInt(readFileSync(path.join(folder, 'data/postmaster.pid'), 'utf8'), 10)
  } catch {
    return undefined
  }
}

/** The watchdog's pid of a server folder. */
export function watchdogPid(folder) {
  return JSON.parse(readFileSync(path.join(folder, 'server.json'), 'utf8')).watchdog.pid
}

/** Whether a process runs (a zombie does not). */
export function runs(pid) {
  try {
    process.kill(pid, 0)
    return !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

/** Every process that works in a folder or names it, except this one. */
export function processesIn(folder) {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(Number).filter((pid) => {
    try {
      const text = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      return pid !== process.pid && runs(pid) && ((text.includes(folder) && /watchdog|postgres/.test(text)) || readlinkSync(`/proc/${pid}/cwd`).startsWith(`${folder}/`))
    } catch {
      return false
    }
  })
}

/** Resolves when nothing runs in the folder any more. */
export function untilNothingRuns(folder) {
  return until(`nothing runs in ${folder}`, () => processesIn(folder).length === 0)
}

/** The uid a process runs as. */
export function uidOf(pid) {
  return Number(/^Uid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1])
}

export { existsSync, path }
