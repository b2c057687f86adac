// The real parts that the tests use when the machine has them: a second PostgreSQL version, PgBouncer.
//
// Finds and starts; decides nothing about which tests run. Each start has a stop that the caller must call.

import { spawn } from 'node:child_process'
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'

import { ask, has } from './run.mjs'

/** The user that servers run as when we are root: they refuse to be root themselves. */
const UNPRIVILEGED = 65534

/** Folders where systems put the servers of several versions side by side. */
const SERVER_FOLDERS = [
  ['/usr/lib/postgresql', 'bin'],
  ['/opt/homebrew/opt', 'bin'],
  ['/usr/local/opt', 'bin'],
]

/** `{ binDir, version }` of a server whose major version is not that of `version`; null when there is none. */
export function findSecondServer(version) {
  const major = (text) => text.split('.')[0]
  for (const [folder, bin] of SERVER_FOLDERS) {
    if (!existsSync(folder)) continue
    for (const name of readdirSync(folder).sort().reverse()) {
      const binDir = path.join(folder, name, bin)
      if (!existsSync(path.join(binDir, 'postgres')) || !existsSync(path.join(binDir, 'initdb'))) continue
      const found = /\d+(\.\d+)*/.exec(ask(path.join(binDir, 'postgres'), ['--version']) ?? '')?.[0]
      if (found !== undefined && major(found) !== major(version)) return { binDir, version: found }
    }
  }
  return null
}

/** Path of PgBouncer, or null. Debian keeps it where an ordinary user's path does not look. */
export function findPgBouncer() {
  const candidates = ['/usr/sbin/pgbouncer', '/usr/bin/pgbouncer', '/opt/homebrew/bin/pgbouncer']
  return candidates.find((file) => existsSync(file)) ?? (has('pgbouncer') ? 'pgbouncer' : null)
}

/**
 * Starts PgBouncer in transaction mode before the server at `url`; resolves to `{ url, port, stop }`. It keeps few
 * server connections, so that two clients really share one.
 */
export async function startPgBouncer(program, url, { port: wanted } = {}) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-pooler-'))
  const port = wanted ?? (await freePort())
  const ini = path.join(folder, 'pgbouncer.ini')
  const users = path.join(folder, 'users.txt')
  const target = serverOf(url)
  writeFileSync(users, `"${target.user}" "${target.password}"\n`)
  writeFileSync(ini, settings({ ...target, port, users, folder }))
  const root = process.getuid?.() === 0
  if (root) for (const file of [folder, ini, users]) chownSync(file, UNPRIVILEGED, UNPRIVILEGED)
  chmodSync(folder, 0o700)
  const account = root ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}
  const child = spawn(program, ['-q', ini], { stdio: ['ignore', 'inherit', 'inherit'], ...account })
  const ended = new Promise((resolve) => child.once('exit', resolve).once('error', resolve))
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGINT')
    await ended
    rmSync(folder, { recursive: true, force: true })
  }
  if (!(await listening(port, ended))) {
    await stop()
    throw new Error(`${program} did not start`)
  }
  const pooled = `postgresql://${encodeURIComponent(target.user)}@127.0.0.1:${port}/${encodeURIComponent(target.database)}`
  return { url: pooled, port, stop }
}

function serverOf(text) {
  // A socket folder as the host does not parse as a URL's host: take the query's host, or the encoded host apart.
  const url = new URL(text.replace(/@%2F[^/:?]*/i, '@socket'))
  const encoded = /@(%2F[^/:?]*)/i.exec(text)?.[1]
  const host = url.searchParams.get('host') ?? (encoded ? decodeURIComponent(encoded) : url.hostname)
  return {
    host,
    serverPort: url.searchParams.get('port') ?? (url.port || '5432'),
    user: decodeURIComponent(url.username) || url.searchParams.get('user') || os.userInfo().username,
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)) || 'postgres',
  }
}

function settings({ host, serverPort, user, password, database, port, users, folder }) {
  const secret = password === '' ? '' : ` password=${password}`
  return `[databases]
${database} = host=${host} port=${serverPort} dbname=${database} user=${user}${secret}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
auth_file = ${users}
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
pidfile = ${path.join(folder, 'pid')}
log_connections = 0
log_disconnections = 0
ignore_startup_parameters = extra_float_digits,options,statement_timeout,idle_in_transaction_session_timeout
`
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

/** Whether something accepts connections on the port before the process ends or ten seconds are over. */
async function listening(port, ended) {
  let over = false
  ended.then(() => (over = true))
  const deadline = Date.now() + 10_000
  while (!over && Date.now() < deadline) {
    const accepted = await new Promise((resolve) => {
      const socket = net.connect(port, '127.0.0.1', () => resolve(true)).once('error', () => resolve(false))
      socket.once('connect', () => socket.destroy())
    })
    if (accepted) return true
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return false
}
