// The demo's view of a folder: every name that a file system allows, and files that are not what they were a moment ago.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { listAll, listSources, look, pack, shownName } from '../examples/demo/files.mjs'

function scratch(t) {
  const folder = mkdtempSync('/tmp/hf-demo-')
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

test('every name is listed as it is, one that is not UTF-8 too', async (t) => {
  const folder = scratch(t)
  const names = ['a b', 'ünï😀', 'new\nline', `q'"\\`, '-dash', '.hidden']
  for (const name of names) writeFileSync(path.join(folder, name), name)
  mkdirSync(path.join(folder, 'node_modules'))
  writeFileSync(path.join(folder, 'node_modules/inner'), '')
  writeFileSync(Buffer.concat([Buffer.from(`${folder}/bad`), Buffer.from([0xff])]), 'bytes')
  const listed = await listAll(folder)
  assert.deepEqual(new Set(listed.map((name) => shownName(name))), new Set([...names, 'node_modules/inner', 'bad\ufffd']))
  for (const name of listed) assert.notEqual((await look(folder, JSON.parse(JSON.stringify(name)))).kind, 'gone')
})

test('the kind of a file says what there is to read', async (t) => {
  const folder = scratch(t)
  writeFileSync(path.join(folder, 'text'), 'hello\n')
  writeFileSync(path.join(folder, 'binary'), Buffer.from([1, 0, 2]))
  writeFileSync(path.join(folder, 'empty'), '')
  writeFileSync(path.join(folder, 'huge'), '')
  truncateSync(path.join(folder, 'huge'), 2 ** 41)
  execFileSync('mkfifo', [path.join(folder, 'special')])
  symlinkSync('nowhere', path.join(folder, 'gone'))
  for (const { text } of await listAll(folder)) assert.equal((await look(folder, { text })).kind, text)
  assert.equal((await look(folder, { text: 'text/below' })).kind, 'gone')
})

test('a file that cannot be read is named so, not an error', (t) => {
  const folder = scratch(t)
  const closed = path.join(folder, 'closed')
  writeFileSync(closed, 'secret')
  chmodSync(closed, 0)
  chmodSync(folder, 0o755)
  // Root reads everything: ask as somebody else.
  const program = `import('${new URL('../examples/demo/files.mjs', import.meta.url).href}').then(async ({ look, pack }) => console.log((await look('${folder}', { text: 'closed' })).kind, (await pack('${folder}', { text: 'closed' })).kind))`
  const account = process.getuid() === 0 ? { uid: 65534, gid: 65534 } : {}
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8', cwd: '/', ...account })
  assert.equal(stdout.trim(), 'unreadable unreadable', stderr)
})

test('hash and size are those of the content, and a file that vanished is gone', async (t) => {
  const folder = scratch(t)
  const content = Buffer.from('line\n'.repeat(100_000))
  writeFileSync(path.join(folder, 'file'), content)
  const { sha256, packed, bytes } = await pack(folder, { text: 'file' })
  assert.equal(sha256, createHash('sha256').update(content).digest('hex'))
  assert.equal(bytes, content.length)
  assert.equal(packed, gzipSync(content).length)
  rmSync(path.join(folder, 'file'))
  assert.deepEqual(await pack(folder, { text: 'file' }), { kind: 'gone' })
})

test('sources are what git knows, or all that is not made', async (t) => {
  const folder = scratch(t)
  for (const name of ['src/a', 'target/b', 'node_modules/c', 'dist/d', '.holdfast/e']) {
    mkdirSync(path.join(folder, path.dirname(name)), { recursive: true })
    writeFileSync(path.join(folder, name), 'x')
  }
  assert.deepEqual((await listSources(folder)).map(shownName), ['src/a'])
  execFileSync('git', ['init', '-q', folder])
  writeFileSync(path.join(folder, '.gitignore'), 'src\n')
  assert.deepEqual(new Set((await listSources(folder)).map(shownName)), new Set(['.gitignore', 'target/b', 'node_modules/c', 'dist/d', '.holdfast/e']))
})
