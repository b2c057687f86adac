// The demo as a person runs it: its table must be true, which is checked with SQL over its data, and nothing may be
// left running.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startTestServer } from '../scripts/lib/server.mjs'
import { processesIn, root, runs, scratchProject, sql, until, untilNothingRuns } from './lib/embedded-harness.mjs'

let server

before(async () => {
  server = await startTestServer()
})

after(() => server.stop())

/** A database of the test's own, because workers take whatever work they find. */
async function ownDatabase(name) {
  await sql(server.url, `create database ${name}`)
  return server.url.replace(/[^/]*$/, name)
}

/** Runs the demo: `{ code, out, err, json }`. `onStart` is given its process. */
function demo(args, { cwd = root, url = '', onStart = () => undefined } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [path.join(root, 'scripts/demo.mjs'), ...args], { cwd, env: { ...process.env, HOLDFAST_DATABASE_URL: url } })
    onStart(child)
    let [out, err] = ['', '']
    child.stdout.setEncoding('utf8').on('data', (text) => { out += text })
    child.stderr.setEncoding('utf8').on('data', (text) => { err += text })
    child.on('error', reject)
    child.on('close', (code) => {
      const last = out.trimEnd().split('\n').at(-1)
      resolve({ code, out, err, json: last?.startsWith('{') ? JSON.parse(last) : undefined })
    })
  })
}

function scratch(t) {
  const folder = mkdtempSync('/tmp/hf-demo-')
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** The pids of the workers that a demo told about. */
function workersIn(text) {
  return [...new Set([...text.matchAll(/worker (\d+)/g)].map(([, pid]) => Number(pid)))]
}

describe('demo', { concurrency: 3 }, () => {
  test('every file is indexed once although the worker is killed half-way', async (t) => {
    const url = await ownDatabase('half_way')
    const folder = scratch(t)
    mkdirSync(path.join(folder, 'sub'))
    const contents = { 'a b': 'x', 'ünï😀': 'y', 'new\nline': 'z', [`q'"\\`]: 'q', 'sub/binary': '\0\u0001', empty: '' }
    for (let n = 0; n < 150; n += 1) contents[`sub/file ${n}`] = `content ${n}\n`.repeat(n + 1)
    for (const [name, text] of Object.entries(contents)) writeFileSync(path.join(folder, name), text)
    symlinkSync('nowhere', path.join(folder, 'dangling'))

    const { code, json, err } = await demo([folder, '--json'], { url })
    assert.equal(code, 0, err)
    const files = Object.keys(contents).length + 1
    const { seconds, repeated, run, inFlight } = json
    assert.deepEqual([json.files, json.kills, json.lost, json.doubled], [files, 1, 0, 0])
    assert.equal(json.steps, 3 * (files - 2) + 2 * 2, 'an empty and a vanished file have no second step')
    assert.equal(repeated >= inFlight && inFlight > 0, true, `${repeated} repeated, ${inFlight} in flight`)
    assert.equal(seconds > 0, true)

    const rows = await sql(url, 'select path, kind, sha256 from demo.files where run = $1', [run])
    assert.equal(rows.length, files)
    for (const row of rows) {
      if (row.path === 'dangling') assert.equal(row.kind, 'gone')
      else if (row.path === 'empty') assert.equal(row.kind, 'empty')
      else assert.equal(row.sha256, createHash('sha256').update(readFileSync(path.join(folder, row.path))).digest('hex'), row.path)
    }
    const workers = await sql(url, 'select count(distinct worker)::int as n from demo.attempts where run = $1', [run])
    assert.equal(workers[0].n, 2)
    const endless = await sql(url, 'select count(*)::int as n from demo.attempts where run = $1 and delivery > 2', [run])
    assert.equal(endless[0].n, 0, 'one kill costs one delivery')

    const shown = await demo(['--sql', `select count(*) as files from demo.files where run = '${run}'`], { url })
    assert.equal(shown.code, 0, shown.err)
    assert.match(shown.out, new RegExp(`files\\n-+\\n${files}\\n\\(1 rows\\)`))
  })

  test('one file is enough for a kill, and the table is for people', async (t) => {
    const url = await ownDatabase('one_file')
    const folder = scratch(t)
    writeFileSync(path.join(folder, 'only'), 'one')
    const { code, out, err } = await demo([folder], { url })
    assert.equal(code, 0, err)
    const row = (name) => Number(new RegExp(`^  ${name} +(\\d+)`, 'm').exec(out)?.[1])
    assert.deepEqual(['files', 'steps', 'kills', 'repeated', 'lost', 'doubled'].map(row), [1, 3, 1, 1, 0, 0], out)
    for (const text of ['1 of 1 files', 'SIGKILL of worker', 'Every file is in the index once.', 'psql "$HOLDFAST_DATABASE_URL" -c']) assert.equal(out.includes(text), true, out)
  })

  test('without a folder it runs over the project on a server of its own and leaves nothing running', async (t) => {
    const cwd = scratchProject(t)
    const { code, json, err } = await demo(['--json'], { cwd })
    assert.equal(code, 0, err)
    assert.equal(json.files > 50 && json.lost === 0 && json.doubled === 0 && json.kills === 1, true, JSON.stringify(json))
    assert.deepEqual(processesIn(path.join(cwd, '.holdfast')), [])
    assert.deepEqual(workersIn(err).filter(runs), [])
  })

  test('a killed demo leaves nothing running', async (t) => {
    const cwd = scratchProject(t)
    let said = ''
    await demo([], { cwd, onStart: (child) => child.stdout.on('data', (text) => {
      said += text
      if (said.includes('takes over')) child.kill('SIGKILL')
    }) })
    assert.equal(workersIn(said).length, 2, said)
    await until('the workers end', () => workersIn(said).every((pid) => !runs(pid)), 20_000)
    await untilNothingRuns(path.join(cwd, '.holdfast'))
  })

  test('the data can be looked at afterwards, until Ctrl-C', async (t) => {
    const cwd = scratchProject(t)
    let said = ''
    let answer
    const { code } = await demo(['--serve'], { cwd, onStart: (child) => child.stdout.on('data', async (text) => {
      said += text
      const url = /^psql '(.*)'\n/.exec(said)?.[1]
      if (url === undefined || answer !== undefined) return
      answer = await sql(url, 'select current_database() as name').catch((error) => error)
      child.kill('SIGINT')
    }) })
    assert.deepEqual(answer, [{ name: 'demo' }])
    assert.equal(code, 130)
    assert.deepEqual(processesIn(path.join(cwd, '.holdfast')), [])
  })

  test('what cannot be run is said', async (t) => {
    const url = await ownDatabase('refused')
    const cases = [
      [['/nowhere', '--json'], 2, /\/nowhere is not a folder/],
      [['a', 'b'], 2, /one folder at most/],
      [['--jsn'], 2, /Unknown option/],
      [[scratch(t)], 1, /there are no files below/],
      [['--sql', 'select nonsense'], 1, /nonsense/],
    ]
    for (const [args, code, text] of cases) {
      const answer = await demo(args, { url })
      assert.equal(answer.code, code, answer.err)
      assert.match(answer.err, text)
    }
  })
})
