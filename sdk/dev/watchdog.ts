// The watchdog: a small detached process that owns a server. Every user process holds a connection to it, so it
// sees each of them end, however they end; when the last one is gone it stops PostgreSQL, and for a temporary
// server removes the folder. Its program is the text of the function below, sent over standard input: it is found
// in the CommonJS and the ESM build and in a bundle alike, and a starter that is killed half-way sends no program.
// The function must therefore use nothing from outside itself.

/** What a watchdog is told. */
export type WatchdogTask = {
  readonly postgres: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly account?: { readonly uid: number; readonly gid: number }
  readonly dataFolder: string
  readonly logFile: string
  /** The unix socket users connect to. */
  readonly control: string
  /** The postmaster to take over when its watchdog was killed; absent to start one. */
  readonly adopt?: number
  /** Removed when the server has stopped. */
  readonly remove: readonly string[]
  /** How long the server outlives its last user. */
  readonly graceMs: number
  /** How long a start may take; a crash recovery is part of it. */
  readonly startMs: number
}

/** The program of a watchdog for this task. */
export function watchdogProgram(task: WatchdogTask): string {
  return `(${watchdog.toString()})(${JSON.stringify(task)}, require)\n`
}

function watchdog(task: WatchdogTask, load: (name: string) => unknown): void {
  const fs = load('node:fs') as typeof import('node:fs')
  const net = load('node:net') as typeof import('node:net')
  const { spawn } = load('node:child_process') as typeof import('node:child_process')
  // The starter is the first user: its end of our standard output closes when it has joined, or has died.
  const starter = new net.Socket({ fd: 1, readable: true, writable: true })
  const users = new Set([starter])
  let pid = 0
  let ready = false
  let reported = false
  let stopping = false
  let restarts = 0
  let grace: NodeJS.Timeout | undefined

  const report = (text: object): void => {
    starter.write(`${JSON.stringify(text)}\n`)
  }
  const lockLines = (): string[] => {
    try { return fs.readFileSync(`${task.dataFolder}/postmaster.pid`, 'utf8').split('\n') } catch { return [] }
  }
  const alive = (): boolean => {
    try {
      process.kill(pid, 0)
      return process.platform !== 'linux' || !/\) Z/.test(fs.readFileSync(`/proc/${pid}/stat`, 'utf8'))
    } catch { return false }
  }
  const signal = (name: NodeJS.Signals): void => {
    try { if (pid > 0) process.kill(pid, name) } catch { /* it has ended */ }
  }
  const finish = (): void => {
    for (const file of [task.control, ...task.remove]) fs.rmSync(file, { recursive: true, force: true, maxRetries: 5 })
    process.exit(0)
  }
  const stop = (): void => {
    if (stopping) return
    stopping = true
    clearTimeout(grace)
    server.close()
    fs.rmSync(task.control, { force: true })
    if (pid === 0 || !alive()) return finish()
    signal('SIGINT') // fast: sessions end, a checkpoint is written
    setTimeout(() => signal('SIGQUIT'), 8_000) // immediate: the next start recovers
    setTimeout(() => signal('SIGKILL'), 12_000)
    setTimeout(finish, 14_000)
  }
  const userGone = (): void => {
    clearTimeout(grace)
    if (users.size === 0 && ready && !stopping) grace = setTimeout(stop, task.graceMs)
  }
  const ended = (how: string): void => {
    if (stopping) return finish()
    ready = false
    if (!reported) {
      report({ error: how })
      reported = true
      stopping = true
      // The starter reads the log before it lets go; then the folder may be removed.
      if (starter.destroyed) finish()
      else starter.once('close', finish)
      return
    }
    // Somebody ended the server under its users: start it again, a few times.
    restarts += 1
    if (users.size === 0 || restarts > 5) return finish()
    setTimeout(() => { if (!stopping) start() }, 200)
  }
  const start = (): void => {
    const log = fs.openSync(task.logFile, 'a', 0o600)
    const child = spawn(task.postgres, [...task.args], { cwd: '/', env: { ...task.env }, stdio: ['ignore', log, log], ...(task.account ?? {}) })
    fs.closeSync(log)
    pid = child.pid ?? 0
    child.on('error', (error) => ended(error.message))
    child.on('exit', (code, name) => ended(`exit ${code ?? name}`))
    waitUntilReady(pid, performance.now())
  }
  const adopt = (wanted: number): void => {
    pid = wanted
    const timer = setInterval(() => {
      if (alive()) return
      clearInterval(timer)
      ended('it ended')
    }, 200)
    waitUntilReady(pid, performance.now())
  }
  const waitUntilReady = (started: number, since: number): void => {
    if (stopping || started !== pid || !alive()) return
    const lines = lockLines()
    if (Number(lines[0]) === pid && (lines[7] ?? '').startsWith('ready')) {
      ready = true
      for (const user of users) if (user !== starter) user.write('ok\n')
      if (!reported) report({ ready: true })
      reported = true
      userGone()
    } else if (performance.now() - since > task.startMs) {
      if (!reported) report({ error: `not ready after ${task.startMs} ms` })
      stop()
    } else {
      setTimeout(() => waitUntilReady(started, since), 10)
    }
  }

  const watch = (user: import('node:net').Socket): void => {
    users.add(user)
    user.on('error', () => undefined)
    user.on('close', () => {
      users.delete(user)
      userGone()
    })
  }

  const server = net.createServer((user) => {
    if (stopping) return void user.destroy()
    clearTimeout(grace)
    watch(user)
    user.on('data', (text) => {
      if (!text.toString().includes('stop')) return
      users.delete(user)
      if (users.size === 0) stop() // its connection ends with this process: that is the answer
      else user.end()
    })
    if (ready) user.write('ok\n')
  })
  watch(starter)
  starter.resume()
  process.on('SIGHUP', () => undefined)
  process.on('SIGINT', stop)
  process.on('SIGTERM', stop)
  fs.rmSync(task.control, { force: true })
  server.on('error', (error) => {
    report({ error: error.message })
    stop()
  })
  server.listen(task.control, () => {
    if (task.adopt === undefined) start()
    else adopt(task.adopt)
  })
}
