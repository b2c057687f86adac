// The life of the embedded server: who starts it, who shares it, and what is left after a SIGKILL of any of the
// processes involved. Every kill is a real one of a process this file started.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { EmbeddedPostgres } from '../scripts/lib/embedded.mjs'
import { acquireLock } from '../dist/esm/dev/lock.js'
import { existsSync, path, postmasterPid, runs, scratchProject, sql, spawnUser, startUser, until, untilNothingRuns, watchdogPid } from './lib/embedded-harness.mjs'

describe('life of the embedded server', { concurrency: 3 }, () => {
  test('two processes share one server, and it stays until the second has gone', async (t) => {
    const project = scratchProject(t)
    const first = await startUser(t, project, { persistent: true })
    const second = await startUser(t, project, { persistent: true })
    assert.equal(second.url, first.url)
    const pid = postmasterPid(first.dataDir)
    await first.kill()
    assert.deepEqual(await sql(second.url, 'select 1 as one'), [{ one: 1 }])
    assert.equal(postmasterPid(first.dataDir), pid)
    await second.kill()
    await untilNothingRuns(first.dataDir)
    assert.equal(existsSync(path.join(first.dataDir, 'data/PG_VERSION')), true)
  })

  test('starters at the same time end up with one server', async (t) => {
    const project = scratchProject(t)
    const users = await Promise.all(Array.from({ length: 4 }, () => startUser(t, project, { persistent: true, database: 'shared' })))
    const started = await Promise.all(users.map(({ url }) => sql(url, 'select pg_postmaster_start_time()::text as at, current_database() as name')))
    assert.equal(new Set(started.map(([row]) => `${row.at} ${row.name}`)).size, 1)
    await Promise.all(users.map(({ kill }) => kill()))
    await untilNothingRuns(users[0].dataDir)
  })

  test('a killed user of a temporary server leaves nothing', async (t) => {
    const user = await startUser(t, scratchProject(t))
    const pid = postmasterPid(user.dataDir)
    assert.equal(runs(pid), true)
    await user.kill()
    await until('the folder is gone', () => !existsSync(user.dataDir))
    assert.equal(runs(pid), false)
  })

  test('a user that forgets to stop still exits by itself', async (t) => {
    const user = await startUser(t, scratchProject(t), { leave: true })
    assert.deepEqual(await user.exited, [0, null])
    await until('the folder is gone', () => !existsSync(user.dataDir))
  })

  test('stop of one user leaves the server to the other', async (t) => {
    const dataDir = path.join(scratchProject(t), 'pg')
    const [one, two] = await Promise.all([EmbeddedPostgres.start({ dataDir }), EmbeddedPostgres.start({ dataDir })])
    await one.stop()
    assert.deepEqual(await sql(two.url, 'select 1 as one'), [{ one: 1 }])
    await two.stop()
    await untilNothingRuns(dataDir)
  })

  test('a user that comes while the server stops gets a new one', async (t) => {
    const dataDir = path.join(scratchProject(t), 'pg')
    const first = await EmbeddedPostgres.start({ dataDir })
    const stopping = first.stop()
    const second = await EmbeddedPostgres.start({ dataDir })
    await stopping
    assert.deepEqual(await sql(second.url, 'select 1 as one'), [{ one: 1 }])
    await second.stop()
  })

  test('joining with other settings or another port is refused and ends nothing', async (t) => {
    const dataDir = path.join(scratchProject(t), 'pg')
    const first = await EmbeddedPostgres.start({ dataDir, settings: { work_mem: '5MB' } })
    await assert.rejects(EmbeddedPostgres.start({ dataDir, settings: { work_mem: '6MB' } }), { code: 'EMBEDDED_IN_USE', message: /work_mem = 5MB/ })
    await assert.rejects(EmbeddedPostgres.start({ dataDir, port: 54999 }), { code: 'EMBEDDED_IN_USE', message: /unix socket/ })
    assert.deepEqual(await sql(first.url, 'select 1 as one'), [{ one: 1 }])
    await first.stop()
  })

  test('a killed watchdog is replaced while a user lives, and the server goes on', async (t) => {
    const user = await startUser(t, scratchProject(t), { persistent: true })
    const pid = postmasterPid(user.dataDir)
    const watchdog = watchdogPid(user.dataDir)
    process.kill(watchdog, 'SIGKILL')
    await until('a new watchdog', () => watchdogPid(user.dataDir) !== watchdog && runs(watchdogPid(user.dataDir)))
    assert.equal(postmasterPid(user.dataDir), pid)
    assert.deepEqual(await sql(user.url, 'select 1 as one'), [{ one: 1 }])
    await user.kill()
    await untilNothingRuns(user.dataDir)
    assert.equal(runs(pid), false)
  })

  test('a killed watchdog of a temporary server is replaced, and the folder still goes', async (t) => {
    const user = await startUser(t, scratchProject(t))
    const watchdog = watchdogPid(user.dataDir)
    process.kill(watchdog, 'SIGKILL')
    await until('a new watchdog', () => watchdogPid(user.dataDir) !== watchdog)
    await user.kill()
    await until('the folder is gone', () => !existsSync(user.dataDir))
  })

  test('a server without watchdog and users is taken over by the next start', async (t) => {
    const project = scratchProject(t)
    const user = await startUser(t, project, { persistent: true })
    const pid = postmasterPid(user.dataDir)
    user.child.kill('SIGSTOP') // so that it cannot replace its watchdog
    process.kill(watchdogPid(user.dataDir), 'SIGKILL')
    await user.kill()
    assert.equal(runs(pid), true)
    const next = await startUser(t, project, { persistent: true })
    assert.equal(next.url, user.url)
    assert.equal(postmasterPid(next.dataDir), pid)
    await next.kill()
    await untilNothingRuns(next.dataDir)
  })

  test('after a kill of user, watchdog and server the next start works and has the data', async (t) => {
    const project = scratchProject(t)
    const user = await startUser(t, project, { persistent: true })
    await sql(user.url, 'create table kept as select generate_series(1, 1000) as n')
    const pid = postmasterPid(user.dataDir)
    user.child.kill('SIGSTOP')
    process.kill(watchdogPid(user.dataDir), 'SIGKILL')
    process.kill(pid, 'SIGKILL')
    await user.kill()
    assert.equal(postmasterPid(user.dataDir), pid, 'the stale lock file is there')
    const next = await startUser(t, project, { persistent: true })
    assert.deepEqual(await sql(next.url, 'select count(*)::int as n from kept'), [{ n: 1000 }])
  })

  test('an abandoned temporary server is ended by the next temporary start', async (t) => {
    const project = scratchProject(t)
    const user = await startUser(t, project)
    const pid = postmasterPid(user.dataDir)
    user.child.kill('SIGSTOP')
    process.kill(watchdogPid(user.dataDir), 'SIGKILL')
    await user.kill()
    await (await EmbeddedPostgres.start()).stop()
    await until('the abandoned server ends', () => !runs(pid) && !existsSync(user.dataDir))
  })

  test('a killed server comes back under the same URL while it has users', async (t) => {
    const user = await startUser(t, scratchProject(t), { persistent: true })
    const pid = postmasterPid(user.dataDir)
    process.kill(pid, 'SIGKILL')
    await until('the server is back', async () => postmasterPid(user.dataDir) !== pid && await sql(user.url, 'select 1').then(() => true, () => false))
  })

  test('a lock file that names another program neither stops the start nor harms the program', async (t) => {
    const dataDir = path.join(scratchProject(t), 'pg')
    await (await EmbeddedPostgres.start({ dataDir })).stop()
    const other = spawn(process.execPath, ['-e', 'setInterval(() => 0, 1000)'])
    t.after(() => other.kill('SIGKILL'))
    writeFileSync(path.join(dataDir, 'data/postmaster.pid'), `${other.pid}\n${dataDir}/data\n1\n5432\n/tmp/x\n\n  1 2\nready\n`)
    const server = await EmbeddedPostgres.start({ dataDir })
    assert.deepEqual(await sql(server.url, 'select 1 as one'), [{ one: 1 }])
    assert.equal(runs(other.pid), true)
    await server.stop()
    assert.equal(runs(other.pid), true)
  })

  test('a server somebody else runs on the folder is named and left alone', async (t) => {
    const dataDir = path.join(scratchProject(t), 'pg')
    await (await EmbeddedPostgres.start({ dataDir })).stop()
    const foreign = await startForeign(t, path.join(dataDir, 'data'))
    await assert.rejects(EmbeddedPostgres.start({ dataDir }), { code: 'EMBEDDED_IN_USE', message: new RegExp(`pid ${foreign.pid}\\) runs on`) })
    assert.equal(runs(foreign.pid), true)
  })

  test('a starter killed at any moment of its first start does not spoil the next', async (t) => {
    const project = scratchProject(t, { fresh: true })
    const cache = path.join(project, '.holdfast/cache')
    const reached = [
      () => list(cache).some((name) => name.startsWith('links-')),
      () => list(cache).some((name) => name.startsWith('template-')), // half copied, or just complete
      () => list(cache).some((name) => /^template-[\d.]+-\d+$/.test(name)),
      () => list(path.join(project, '.holdfast/postgres')).some((name) => name.startsWith('data')),
      () => existsSync(path.join(project, '.holdfast/postgres/server.json')),
    ]
    for (const [number, condition] of reached.entries()) {
      const user = spawnUser(t, project, { persistent: true })
      await until(`moment ${number}`, condition)
      await user.kill()
    }
    const next = await startUser(t, project, { persistent: true })
    assert.deepEqual(await sql(next.url, 'select 1 as one'), [{ one: 1 }])
    assert.deepEqual(list(next.dataDir).filter((name) => name.startsWith('data.new-')), [])
    await next.kill()
    await untilNothingRuns(next.dataDir)
  })

  test('a lock is waited for while its holder lives, and passed when it is dead', async (t) => {
    const folder = mkdtempSync('/tmp/hf-lock-')
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const held = await acquireLock(folder, 1_000)
    await assert.rejects(acquireLock(folder, 80), { code: 'EMBEDDED_IN_USE', message: new RegExp(`pid ${process.pid}`) })
    const waiting = acquireLock(folder, 5_000)
    held.release()
    ;(await waiting).release()
    const [number] = list(folder)
    writeFileSync(path.join(folder, number), JSON.stringify({ pid: process.pid, start: 'another life of this pid', nonce: 'x' }))
    ;(await acquireLock(folder, 1_000)).release()
  })

  test('one at a time holds the lock, however many want it', async (t) => {
    const folder = mkdtempSync('/tmp/hf-lock-')
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const program = `
      import { acquireLock } from ${JSON.stringify(new URL('../dist/esm/dev/lock.js', import.meta.url).href)}
      import { mkdirSync, rmdirSync } from 'node:fs'
      for (let n = 0; n < 15; n++) {
        const lock = await acquireLock(${JSON.stringify(path.join(folder, 'locks'))}, 20000)
        mkdirSync(${JSON.stringify(path.join(folder, 'inside'))}) // fails when another holder is inside
        rmdirSync(${JSON.stringify(path.join(folder, 'inside'))})
        if (n === 14 && process.argv[1] === 'die') process.kill(process.pid, 'SIGKILL')
        lock.release()
      }`
    const codes = await Promise.all(['a', 'b', 'die', 'c', 'd'].map((name) => new Promise((resolve) => {
      spawn(process.execPath, ['--input-type=module', '-e', program, name], { stdio: ['ignore', 'inherit', 'inherit'] }).on('exit', (code, signal) => resolve(code ?? signal))
    })))
    assert.deepEqual(codes, [0, 0, 'SIGKILL', 0, 0])
  })
})

function list(folder) {
  return existsSync(folder) ? readdirSync(folder) : []
}

/** Starts a server on a copy of nothing of ours: same data folder, its own socket folder. */
async function startForeign(t, data) {
  const sockets = mkdtempSync('/tmp/hf-foreign-')
  const command = readFileSync(path.join(data, 'postmaster.opts'), 'utf8').split(' ')[0]
  const cache = path.join(process.cwd(), '.holdfast/cache')
  const links = list(cache).filter((name) => name.startsWith('links-')).map((name) => path.join(cache, name)).join(':')
  const account = process.getuid() === 0 ? { uid: 65534, gid: 65534 } : {}
  if (process.getuid() === 0) await new Promise((resolve) => spawn('chown', ['65534:65534', sockets]).on('exit', resolve))
  const child = spawn(command, ['-D', data, '-c', 'listen_addresses=', '-c', `unix_socket_directories=${sockets}`], { cwd: '/', stdio: 'ignore', env: { LD_LIBRARY_PATH: links }, ...account })
  t.after(async () => {
    if (child.exitCode === null) {
      child.kill('SIGQUIT')
      await new Promise((resolve) => child.once('exit', resolve))
    }
    rmSync(sockets, { recursive: true, force: true })
  })
  await until('the foreign server is ready', () => existsSync(path.join(data, 'postmaster.pid')) && /\nready/.test(readFileSync(path.join(data, 'postmaster.pid'), 'utf8')))
  return child
}
