// One server folder: joins the server that runs there, or starts it. The folder holds `data` (PostgreSQL's own),
// `log`, `server.json` (who runs it and where) and `locks`. Starting is done under the folder's lock, so a second
// starter waits for the first and then joins. What a crash left behind is judged here: a process is touched only
// when it provably is our PostgreSQL on this very data folder.
import { spawn } from 'node:child_process'
import { chmodSync, closeSync, existsSync, openSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import * as net from 'node:net'
import * as path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Account } from './account.js'
import { findBinaries, majorOf } from './binaries.js'
import { EmbeddedPostgresError } from './failure.js'
import { makeSocketFolder, socketFolderName } from './folder.js'
import { identify, isPostgresOn, isRunning, postgresProcessesOn, readPostmaster, type ProcessId } from './identity.js'
import { acquireLock } from './lock.js'
import { makeDataFolder, preparePrograms, type Programs } from './template.js'
import { watchdogProgram, type WatchdogTask } from './watchdog.js'

/** What a server is started with. */
export type ServerPlan = {
  readonly project: string
  readonly home: string
  readonly folder: string
  readonly temporary: boolean
  readonly account: Account | undefined
  readonly binDir: string | undefined
  /** A port on 127.0.0.1; undefined for the unix socket alone. */
  readonly port: number | undefined
  readonly settings: Readonly<Record<string, string>>
}

/** Where a server is reached and what it was started with. */
type Place = {
  readonly sockets: string
  readonly port: number | undefined
  readonly settings: Readonly<Record<string, string>>
}

/** What `server.json` says. */
export type Running = Place & { readonly watchdog: ProcessId; readonly control: string }

/** A membership: while the connection is open the server stays. */
export type Membership = { readonly running: Running; readonly connection: net.Socket }

const START_MS = 60_000
const STOP_MS = 20_000
const GRACE_MS = 1_500
/** A log beyond this size starts anew; the one before it is kept. */
const LOG_BYTES = 10 * 1024 * 1024

/** Joins the server of the folder, after starting it when none runs. */
export async function joinServer(plan: ServerPlan): Promise<Membership> {
  const already = await attach(plan.folder)
  if (already !== undefined) return sameSettings(plan, already)
  const lock = await acquireLock(path.join(plan.folder, 'locks'), START_MS + STOP_MS)
  try {
    const meanwhile = await attach(plan.folder)
    if (meanwhile !== undefined) return sameSettings(plan, meanwhile)
    await previousHasEnded(plan.folder)
    return await startServer(plan)
  } finally {
    lock.release()
  }
}

/** Connects to the watchdog of the folder; undefined when none answers. */
export async function attach(folder: string): Promise<Membership | undefined> {
  const running = readRunning(folder)
  if (running === undefined) return undefined
  const connection = net.connect(running.control)
  const joined = await new Promise<boolean>((resolve) => {
    connection.once('data', () => resolve(true))
    connection.once('close', () => resolve(false))
    connection.once('error', () => resolve(false))
  })
  if (!joined) return undefined
  connection.on('error', () => undefined)
  return { running, connection }
}

/** The last lines of the server's log, for an error text. */
export function logTail(folder: string, lines = 12): string {
  try {
    return readFileSync(path.join(folder, 'log'), 'utf8').trimEnd().split('\n').slice(-lines).join('\n')
  } catch {
    return '(no log)'
  }
}

/** What is recorded about the server of a folder; undefined when nothing usable is. */
export function readRunning(folder: string): Running | undefined {
  try {
    return JSON.parse(readFileSync(path.join(folder, 'server.json'), 'utf8')) as Running
  } catch {
    return undefined
  }
}

function sameSettings(plan: ServerPlan, member: Membership): Membership {
  const { running } = member
  const other = plan.port !== undefined && plan.port !== 0 && plan.port !== running.port ? `port ${running.port ?? 'none (unix socket)'}`
    : Object.entries(plan.settings).filter(([name, value]) => running.settings[name] !== value)
      .map(([name]) => `${name} = ${running.settings[name] ?? 'the default'}`)[0]
  if (other === undefined) return member
  member.connection.destroy()
  throw new EmbeddedPostgresError('EMBEDDED_IN_USE', `the server in ${plan.folder} already runs with ${other}: stop its users first, or use another dataDir`)
}

/** A watchdog that is about to end is waited for; then nothing of it is left but files. */
async function previousHasEnded(folder: string): Promise<void> {
  const running = readRunning(folder)
  const end = performance.now() + STOP_MS
  while (running !== undefined && isRunning(running.watchdog)) {
    if (performance.now() > end) throw new EmbeddedPostgresError('EMBEDDED_IN_USE', `the watchdog (pid ${running.watchdog.pid}) of the server in ${folder} does not answer and does not end`)
    await delay(20)
  }
}

async function startServer(plan: ServerPlan): Promise<Membership> {
  const data = path.join(plan.folder, 'data')
  const wanted = plan.temporary ? path.join(plan.folder, 's') : socketFolderName(plan.folder, plan.account)
  const previous = readRunning(plan.folder)
  const adopt = await judgeLeftovers(data, [wanted, previous?.sockets])
  const programs = await prepareData(plan, data)
  // A server that is taken over keeps what it was started with.
  const place: Place = adopt !== undefined && previous !== undefined
    ? { sockets: previous.sockets, port: previous.port, settings: previous.settings }
    : { sockets: makeSocketFolder(wanted, plan.account), port: await freePort(plan.port), settings: plan.settings }
  const task: WatchdogTask = {
    ...taskOf(plan, programs, data, place),
    ...(adopt === undefined ? {} : { adopt }),
    ...(plan.account === undefined ? {} : { account: plan.account }),
  }
  const letGo = await spawnWatchdog(plan.folder, task, { control: task.control, ...place })
  const member = await attach(plan.folder)
  letGo()
  if (member === undefined) throw new EmbeddedPostgresError('EMBEDDED_START_FAILED', `the embedded server ended right after its start:\n${logTail(plan.folder)}`)
  return member
}

/**
 * Looks at what an earlier server left in the data folder. Returns the postmaster to take over, if ours still runs
 * without its watchdog; removes a lock file whose process is not PostgreSQL on this folder.
 */
async function judgeLeftovers(data: string, ourSockets: ReadonlyArray<string | undefined>): Promise<number | undefined> {
  const postmaster = readPostmaster(data)
  if (postmaster === undefined) return undefined
  if (isPostgresOn(postmaster.pid, data)) {
    if (ourSockets.includes(postmaster.socketFolder)) return postmaster.pid
    throw new EmbeddedPostgresError('EMBEDDED_IN_USE', `another PostgreSQL server (pid ${postmaster.pid}) runs on ${data}: stop it, or set HOLDFAST_DATABASE_URL to use it`)
  }
  // Sessions of a killed postmaster end by themselves as soon as they notice.
  const end = performance.now() + 5_000
  for (let left = postgresProcessesOn(data); left.length > 0; left = postgresProcessesOn(data)) {
    if (performance.now() > end) throw new EmbeddedPostgresError('EMBEDDED_IN_USE', `processes ${left.join(', ')} of an earlier PostgreSQL still work on ${data}`)
    await delay(20)
  }
  // The recorded pid is gone, a zombie or another program by now, which PostgreSQL itself cannot tell apart.
  rmSync(path.join(data, 'postmaster.pid'), { force: true })
  for (const sockets of ourSockets) {
    if (sockets === undefined || !existsSync(sockets)) continue
    for (const name of readdirSync(sockets)) if (name.startsWith('.s.PGSQL.')) rmSync(path.join(sockets, name), { force: true })
  }
  return undefined
}

/** Finds the programs and makes the data folder when it is missing. */
async function prepareData(plan: ServerPlan, data: string): Promise<Programs> {
  const fresh = !existsSync(data)
  const major = fresh ? undefined : readFileSync(path.join(data, 'PG_VERSION'), 'utf8').trim()
  const found = findBinaries(plan.project, plan.binDir, major)
  if (major !== undefined && majorOf(found.version) !== major) {
    throw new EmbeddedPostgresError('EMBEDDED_FOLDER', `${data} was made by PostgreSQL ${major}, and ${found.bin} is ${found.version}: use PostgreSQL ${major}, or remove the folder`)
  }
  const programs = await preparePrograms(found, plan.home, plan.account)
  if (fresh) await makeDataFolder(data, programs, plan.home, plan.account, !plan.temporary)
  return programs
}

function taskOf(plan: ServerPlan, programs: Programs, data: string, { sockets, port, settings }: Place): WatchdogTask {
  const options = {
    listen_addresses: port === undefined ? '' : '127.0.0.1', port: String(port ?? 5432),
    unix_socket_directories: sockets, unix_socket_permissions: '0700',
    max_connections: '200', timezone: 'UTC', log_timezone: 'UTC', logging_collector: 'off', log_line_prefix: '%m [%p] ',
    // A temporary server is thrown away: it need not survive a crash of the machine, only of its processes.
    ...(plan.temporary ? { fsync: 'off', full_page_writes: 'off' } : { fsync: 'on' }),
    ...settings,
  }
  return {
    postgres: programs.postgres, env: programs.env, dataFolder: data,
    args: ['-D', data, ...Object.entries(options).flatMap(([name, value]) => ['-c', `${name}=${value}`])],
    logFile: path.join(plan.folder, 'log'), control: path.join(plan.temporary ? plan.folder : sockets, 'control'),
    remove: plan.temporary ? [plan.folder] : [path.join(plan.folder, 'server.json'), sockets],
    graceMs: GRACE_MS, startMs: START_MS,
  }
}

async function freePort(wanted: number | undefined): Promise<number | undefined> {
  if (wanted !== 0) return wanted
  const probe = net.createServer()
  await new Promise<void>((resolve, reject) => probe.once('error', reject).listen(0, '127.0.0.1', resolve))
  const { port } = probe.address() as net.AddressInfo
  await new Promise((resolve) => probe.close(resolve))
  return port
}

/** Starts the watchdog and waits until its server is ready. It counts us as a user until the returned function is called. */
async function spawnWatchdog(folder: string, task: WatchdogTask, recorded: Omit<Running, 'watchdog'>): Promise<() => void> {
  const log = openLog(task.logFile)
  const { NODE_OPTIONS: _, ...environment } = process.env
  const child = spawn(process.execPath, ['-', 'holdfast-watchdog', folder], { cwd: '/', env: { ...environment, ELECTRON_RUN_AS_NODE: '1' }, detached: true, stdio: ['pipe', 'pipe', log] })
  closeSync(log)
  const started = new Promise<{ ready?: true; error?: string }>((resolve) => {
    let text = ''
    child.on('error', (error) => resolve({ error: error.message }))
    child.on('exit', (code, signal) => resolve({ error: `the watchdog ended (${code ?? signal})` }))
    child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk
      if (text.includes('\n')) resolve(JSON.parse(text.slice(0, text.indexOf('\n'))) as { ready?: true; error?: string })
    })
  })
  const watchdog = child.pid === undefined ? undefined : identify(child.pid)
  if (watchdog !== undefined) {
    // Recorded before the program is sent: whoever comes next always knows of a watchdog that can do something.
    writeWhole(path.join(folder, 'server.json'), JSON.stringify({ watchdog, ...recorded }))
    child.stdin?.on('error', () => undefined)
    child.stdin?.end(watchdogProgram(task))
  }
  const { error } = await started
  child.unref()
  const letGo = (): void => void child.stdout?.destroy()
  if (error === undefined) return letGo
  const text = `the embedded server did not start (${error}); the end of ${task.logFile}:\n${logTail(folder)}`
  letGo()
  throw new EmbeddedPostgresError('EMBEDDED_START_FAILED', text)
}

function openLog(file: string): number {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > LOG_BYTES) renameSync(file, `${file}.1`)
  const log = openSync(file, 'a', 0o600)
  chmodSync(file, 0o600)
  return log
}

function writeWhole(file: string, text: string): void {
  const draft = `${file}.new-${process.pid}`
  writeFileSync(draft, text, { mode: 0o600 })
  renameSync(draft, file)
}
