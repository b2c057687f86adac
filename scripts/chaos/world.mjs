// The parts of a chaos run: a server that can be stopped hard, a ledger on a server of its own, the proxy, PgBouncer, workers.

import { fork } from 'node:child_process'
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

import pg from 'pg'

import { EmbeddedPostgres } from '../lib/embedded.mjs'
import { findPgBouncer, startPgBouncer } from '../lib/parts.mjs'
import { startTestServer } from '../lib/server.mjs'
import { startProxy } from './proxy.mjs'

const LEDGER = `create table effect (id bigint generated always as identity primary key, key text not null, instance text not null,
  pid int not null, delivery int not null, started_at timestamptz not null default clock_timestamp(), ended_at timestamptz);
  create index on effect (key)`

/** Liveness in seconds, so that a short run sees many recoveries. */
const OPTIONS = {
  orchestrationConcurrency: 16, workerConcurrency: 32, heartbeatIntervalMs: 1000, staleAfterMs: 5000,
  orchestratorLockTimeoutMs: 20_000, workerLockTimeoutMs: 60_000, maxAttempts: 50,
}

/** A server whose data outlives it, on a port that stays the same. */
export class Database {
  static async start() {
    const database = new Database()
    database.folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-chaos-'))
    chmodSync(database.folder, 0o755)
    await database.open(0)
    return database
  }

  async open(port) {
    const settings = { max_connections: 200, fsync: 'on', synchronous_commit: 'on' }
    this.server = await EmbeddedPostgres.start({ dataDir: path.join(this.folder, 'server'), port, persistent: true, settings })
    this.url = this.server.url
    this.port = Number(new URL(this.url).port)
  }

  /** As if the machine had lost its power: no goodbye to anybody, and a recovery at the next start. */
  async stopHard() {
    const pid = Number(readFileSync(path.join(this.server.dataDir, 'data/postmaster.pid'), 'utf8').split('\n')[0])
    process.kill(pid, 'SIGQUIT')
    while (isRunning(pid)) await delay(50)
    await this.server.stop().catch(() => {})
  }

  async restart() {
    await this.open(this.port)
  }

  async stop() {
    await this.server.stop().catch(() => {})
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

function isRunning(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

export async function startWorld({ workers, seed }) {
  const database = await Database.start()
  const ledgerServer = await startTestServer({ port: 0 })
  const ledger = new pg.Pool({ connectionString: ledgerServer.url, max: 4 })
  ledger.on('error', () => {})
  await ledger.query(LEDGER)
  const proxy = await startProxy({ port: database.port, host: '127.0.0.1' })
  const through = new URL(database.url)
  through.port = proxy.port
  const program = findPgBouncer()
  const world = { database, ledger, proxy, url: through.href, seed, workers: [], bouncer: null, kills: [] }
  if (program !== null) world.bouncer = await bouncerBefore(program, through.href)
  world.startWorker = (place) => {
    // One worker goes through the pooler; LISTEN and the schema need the direct way.
    const pooled = world.bouncer !== null && place === 0
    const config = {
      url: pooled ? world.bouncer.url : through.href,
      pool: pooled ? { pooled: true, directUrl: through.href } : {},
      options: OPTIONS,
      ledger: ledgerServer.url,
    }
    const env = { ...process.env, HOLDFAST_CHAOS: JSON.stringify(config) }
    const child = fork(path.join(import.meta.dirname, 'worker.mjs'), { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
    world.workers[place] = child
    return new Promise((resolve, reject) => {
      child.once('message', resolve)
      child.once('exit', (code, signal) => (signal === 'SIGKILL' ? resolve() : reject(new Error(`a worker ended by itself: ${code ?? signal}`))))
    })
  }
  for (let place = 0; place < workers; place++) await world.startWorker(place)
  world.stop = async () => {
    await Promise.all(world.workers.map((child) => end(child)))
    await world.bouncer?.stop()
    await proxy.stop()
    await ledger.end()
    await ledgerServer.stop()
    await database.stop()
  }
  return world
}

/** PgBouncer on a port that stays the same. */
async function bouncerBefore(program, url) {
  let current = await startPgBouncer(program, url)
  const { port } = current
  return {
    url: current.url,
    stop: () => current.stop(),
    async start() {
      current = await startPgBouncer(program, url, { port })
    },
  }
}

/** A worker must end by itself when it is told to. */
async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = new Promise((resolve) => child.once('exit', resolve))
  child.send('stop')
  const timer = setTimeout(() => child.kill('SIGKILL'), 15_000)
  await gone
  clearTimeout(timer)
}
