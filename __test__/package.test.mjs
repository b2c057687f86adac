// What a user installs: the packed package and the packed binary of this machine, in an empty folder, offline.
//
// The programs of the README run there, from CommonJS, from an ES module and from TypeScript.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'

import { ask, root } from '../scripts/lib/run.mjs'
import { startTestServer } from '../scripts/lib/server.mjs'

const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'))
const platforms = readdirSync(path.join(root, 'npm'))
const binary = (platform) => `${manifest.napi.binaryName}.${platform}.node`
const platform = platforms.find((name) => readdirSync(root).includes(binary(name)))

function npm(cwd, ...args) {
  return execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })
}

/** Every file that an exports map names. */
const paths = (entry) => (typeof entry === 'string' ? [entry.replace(/^\.\//, '')] : Object.values(entry).flatMap(paths))

/** Packs a folder; `{ file, names }`. */
function pack(folder, to) {
  const [packed] = JSON.parse(npm(folder, 'pack', '--json', '--ignore-scripts', '--pack-destination', to))
  return { file: path.join(to, packed.filename), names: packed.files.map((file) => file.path) }
}

/** An authority and a certificate of it for `localhost`, made by the openssl command; the key is the server's. */
function certificates(folder) {
  const openssl = (...args) => execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const at = (name) => path.join(folder, name)
  mkdirSync(folder)
  writeFileSync(at('names'), 'subjectAltName=DNS:localhost\n')
  openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=test authority', '-keyout', 'ca.key', '-out', 'ca.crt')
  openssl('req', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=localhost', '-keyout', 'server.key', '-out', 'server.csr')
  openssl('x509', '-req', '-in', 'server.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'names', '-out', 'server.crt')
  chmodSync(at('server.key'), 0o600)
  // Under root the server runs as nobody.
  if (process.getuid?.() === 0) {
    chownSync(at('server.key'), 65534, 65534)
    for (const open of [path.dirname(folder), folder]) chmodSync(open, 0o755)
  }
  return { authority: at('ca.crt'), certificate: at('server.crt'), key: at('server.key') }
}

describe('an installed package', () => {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-package-'))
  const project = path.join(folder, 'project')
  let server
  let main
  let native

  before(async () => {
    assert.ok(platform, 'the addon of this machine is built')
    const staged = path.join(folder, platform)
    cpSync(path.join(root, 'npm', platform), staged, { recursive: true })
    cpSync(path.join(root, binary(platform)), path.join(staged, binary(platform)))
    main = pack(root, folder)
    native = pack(staged, folder)
    mkdirSync(project)
    writeFileSync(path.join(project, 'package.json'), JSON.stringify({ name: 'project', private: true }))
    npm(project, 'install', '--offline', '--no-audit', '--no-fund', main.file, native.file)
    cpSync(path.join(root, 'examples'), path.join(project, 'examples'), { recursive: true })
    server = await startTestServer()
  })

  after(async () => {
    await server?.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const run = (file) =>
    execFileSync(process.execPath, [file], {
      cwd: project,
      encoding: 'utf8',
      env: { ...process.env, HOLDFAST_DATABASE_URL: server.url },
      stdio: ['ignore', 'pipe', 'inherit'],
      timeout: 60_000,
    })
  const result = (order) => `Completed {"cents":4200,"sent":{"ok":"receipt for order ${order}"}}`
  const tsc = (...args) =>
    execFileSync(process.execPath, [path.join(root, 'node_modules/typescript/bin/tsc'), ...args], { cwd: project, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  const strict = ['--strict', '--exactOptionalPropertyTypes', '--module', 'nodenext', '--target', 'es2022', '--typeRoots', path.join(root, 'node_modules/@types'), '--types', 'node']

  test('holds the built files, the pages and nothing else', () => {
    for (const name of ['index.js', 'index.mjs', 'index.d.ts', 'index.d.mts', 'binding.cjs', 'README.md', 'LICENSE', 'CHANGELOG.md']) {
      assert.ok(main.names.includes(name), name)
    }
    for (const target of paths(manifest.exports)) assert.ok(main.names.includes(target), `exports name ${target}`)
    const odd = main.names.filter((name) => !/^(index\.|binding\.cjs|dist\/|README|LICENSE|CHANGELOG|package\.json)/.test(name) || name.endsWith('.node'))
    assert.deepEqual(odd, [])
    assert.deepEqual(native.names.sort(), ['README.md', binary(platform), 'package.json'].sort())
  })

  test('runs the program of the README as an ES module', () => {
    assert.equal(run('examples/checkout.mjs').trim().split('\n').at(-1), result(17))
  })

  test('runs from CommonJS, with a generator', () => {
    assert.equal(run('examples/checkout.cjs').trim().split('\n').at(-1), result(18))
  })

  test('compiles strictly from TypeScript and runs', () => {
    tsc(...strict, '--outDir', 'compiled', 'examples/checkout.mts')
    assert.equal(run('compiled/checkout.mjs').trim().split('\n').at(-1), result(19))
  })

  test('CP-18: reaches an encrypted server, and only one whose certificate it can check', async () => {
    const files = certificates(path.join(folder, 'tls'))
    const encrypted = await startTestServer({ port: 0, settings: { ssl: 'on', ssl_cert_file: files.certificate, ssl_key_file: files.key } })
    try {
      const url = (host, more) => `${encrypted.url.replace('127.0.0.1', host)}?sslmode=verify-full${more}`
      writeFileSync(path.join(project, 'tls.mjs'), `
        import { PostgresProvider } from 'holdfast'
        for (const url of ${JSON.stringify([url('localhost', `&sslrootcert=${files.authority}`), url('localhost', ''), url('127.0.0.1', `&sslrootcert=${files.authority}`)])}) {
          const answer = await PostgresProvider.connect(url).then((provider) => provider.close(), (error) => error)
          console.log(answer instanceof Error ? \`\${answer.code} \${/certificate/.test(answer.message)}\` : 'connected')
        }
      `)
      assert.deepEqual(run('tls.mjs').trim().split('\n'), ['connected', 'INVALID_URL true', 'INVALID_URL true'])
    } finally {
      await encrypted.stop()
    }
  })

  test('gives the same names to import, default import and require', async () => {
    writeFileSync(path.join(project, 'names.mjs'), `
      import { createRequire } from 'node:module'
      import * as named from 'holdfast'
      import whole from 'holdfast'
      const required = createRequire(import.meta.url)('holdfast')
      const names = (of) => Object.keys(of).filter((name) => !['default', '__esModule', 'module.exports'].includes(name)).sort()
      console.log(JSON.stringify([names(named), names(whole), names(required)]))
    `)
    const [named, whole, required] = JSON.parse(run('names.mjs'))
    assert.ok(named.includes('Runtime') && named.includes('Client') && named.includes('PostgresProvider'))
    assert.deepEqual(whole, named)
    assert.deepEqual(required, named)
  })

  test('has types for CommonJS users and for a default import', () => {
    writeFileSync(path.join(project, 'types.cts'), `
      import holdfast = require('holdfast')
      import dev = require('holdfast/dev')
      export const start: () => Promise<dev.EmbeddedPostgres> = dev.EmbeddedPostgres.start
      const provider: Promise<holdfast.PostgresProvider> = holdfast.PostgresProvider.connect('postgresql://localhost/x')
      export const url: Promise<string> = provider.then((it) => it.schema)
    `)
    writeFileSync(path.join(project, 'types.mts'), `
      import { type EmbeddedPostgresOptions, EmbeddedPostgres } from 'holdfast/dev'
      import holdfast, { type Client, PostgresProvider } from 'holdfast'
      export const make = async (): Promise<Client> => new holdfast.Client(await PostgresProvider.connect('postgresql://localhost/x'))
      export const start = (options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> => EmbeddedPostgres.start(options)
    `)
    tsc(...strict, '--noEmit', 'types.cts', 'types.mts')
  })
})

test('the README shows the example that is run here', () => {
  const readme = readFileSync(path.join(root, 'README.md'), 'utf8')
  const example = readFileSync(path.join(root, 'examples/checkout.mjs'), 'utf8')
  assert.ok(readme.includes('```js\n' + example + '```'))
})

const tree = (...args) => execFileSync('cargo', ['tree', '--edges', 'normal', '--prefix', 'none', ...args], { cwd: root, encoding: 'utf8' })

test('the engine knows nothing of Node, the binding nothing of PostgreSQL', () => {
  assert.doesNotMatch(tree('-p', 'holdfast-core'), /^napi/m)
  assert.doesNotMatch(tree('-p', 'holdfast-napi', '--depth', '1'), /^(tokio-postgres|postgres-native-tls|native-tls) /m)
  assert.doesNotMatch(tree('-p', 'holdfast-replay'), /^(tokio|rand|tracing|log) /m)
})

test('an addon that brings its own OpenSSL imports none', () => {
  if (process.platform !== 'linux') return // Elsewhere TLS is the operating system's.
  const needed = ask('readelf', ['-d', binary(platform)])
  const wanted = ask('nm', ['-D', '--undefined-only', binary(platform)])
  assert.ok(needed !== null && wanted !== null, 'readelf and nm come with the C compiler')
  const dynamic = /NEEDED.*libssl/.test(needed)
  assert.equal(/ SSL_/.test(wanted), dynamic, 'OpenSSL symbols are imported exactly when its library is linked')
})
