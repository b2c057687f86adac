// What the repository promises about itself: one command everywhere, pinned actions, one folder for each target.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'

import { load } from 'js-yaml'

import { countTests } from '../scripts/lib/counts.mjs'
import { chooseOpenSsl } from '../scripts/lib/openssl.mjs'
import { root } from '../scripts/lib/run.mjs'

const read = (file) => readFileSync(path.join(root, file), 'utf8')
const manifest = JSON.parse(read('package.json'))
const workflows = readdirSync(path.join(root, '.github/workflows')).map((name) => [name, load(read(`.github/workflows/${name}`))])
const command = 'npm ci && npm test'

test('continuous integration, the hosted workflow and the README run the same command', () => {
  const local = read('.ci/run').split('\n').map((line) => line.trim())
  assert.ok(local.includes(command), '.ci/run')
  const [, ci] = workflows.find(([name]) => name === 'ci.yml')
  const runs = ci.jobs.test.steps.map((step) => step.run).filter(Boolean)
  assert.ok(runs.includes(command), 'ci.yml')
  assert.ok(runs.includes('bash .ci/install') && local.includes('bash .ci/install'), 'both install the real parts in the same way')
  for (const words of [command, 'npm ci && npm run demo']) assert.ok(read('README.md').includes(words), `README.md says ${words}`)
  assert.equal(manifest.scripts.test, 'node scripts/test.mjs')
})

test('the hosted workflow covers every supported Node version and two processor families', () => {
  const [, ci] = workflows.find(([name]) => name === 'ci.yml')
  const { os, node } = ci.jobs.test.strategy.matrix
  assert.deepEqual(node, [20, 22, 24])
  assert.ok(os.some((name) => name.endsWith('-arm')) && os.some((name) => !name.endsWith('-arm')))
})

test('workflows give no permission by default and pin every action by its full hash', () => {
  for (const [name, workflow] of workflows) {
    assert.deepEqual(workflow.permissions, {}, name)
    for (const job of Object.values(workflow.jobs)) {
      assert.ok(job['timeout-minutes'] > 0, `${name}: every job ends`)
      for (const { uses } of job.steps.filter((step) => step.uses)) assert.match(uses, /^[\w-]+\/[\w-]+@[0-9a-f]{40}$/, name)
    }
  }
})

test('a release builds every target and caches nothing', () => {
  const [, release] = workflows.find(([name]) => name === 'release.yml')
  const targets = release.jobs.build.strategy.matrix.include.map(({ target }) => target)
  assert.deepEqual(targets.toSorted?.() ?? [...targets].sort(), [...manifest.napi.targets].sort())
  assert.doesNotMatch(read('.github/workflows/release.yml'), /actions\/cache/)
  assert.ok(release.jobs.build.steps.some((step) => step.run?.includes('npm run build -- --vendored')))
})

test('every folder below npm/ belongs to a target and says the same as the package', () => {
  const folders = readdirSync(path.join(root, 'npm')).sort()
  assert.deepEqual(folders, manifest.napi.targets.map(folderOf).sort())
  for (const folder of folders) {
    const platform = JSON.parse(read(`npm/${folder}/package.json`))
    const [os, cpu, abi] = folder.split('-')
    assert.equal(platform.name, `${manifest.napi.packageName}-${folder}`)
    assert.deepEqual([platform.os, platform.cpu], [[os], [cpu]])
    assert.deepEqual(platform.libc, os === 'linux' ? [abi === 'gnu' ? 'glibc' : 'musl'] : undefined)
    assert.deepEqual(platform.files, [`${manifest.napi.binaryName}.${folder}.node`])
    for (const key of ['version', 'license', 'engines', 'repository']) assert.deepEqual(platform[key], manifest[key], `${folder}: ${key}`)
  }
})

function folderOf(target) {
  const [cpu, , os, abi] = target.split('-')
  const cpus = { x86_64: 'x64', aarch64: 'arm64' }
  const systems = { linux: 'linux', darwin: 'darwin', windows: 'win32' }
  return [systems[os], cpus[cpu], abi].filter(Boolean).join('-')
}

test('the package has a licence, its Node versions and types for both module systems', () => {
  assert.equal(manifest.license, 'MIT')
  assert.match(read('LICENSE'), /^MIT License/)
  assert.equal(manifest.engines.node, '>=20')
  const { import: esm, require: cjs } = manifest.exports['.']
  assert.deepEqual([Object.keys(esm), Object.keys(cjs)], [['types', 'default'], ['types', 'default']], 'types come first')
  assert.deepEqual([esm.types, cjs.types], ['./index.d.mts', './index.d.ts'], 'each module system has its own types')
  assert.equal(manifest.dependencies, undefined, 'nothing is installed beside the package and its binary')
  assert.ok(manifest.files.includes('!**/*.node'), 'a binary never travels in the package itself')
  assert.equal(manifest.version, /^version = "(.*)"$/m.exec(read('Cargo.toml'))[1], 'one version for Rust and npm')
})

test('the lock file holds no address of a registry', () => {
  assert.match(read('.npmrc'), /^omit-lockfile-registry-resolved=true$/m)
  assert.doesNotMatch(read('package-lock.json'), /"resolved": "https?:/)
})

test('every public page that the README and the index name is there', () => {
  for (const page of ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'docs/README.md', 'STYLE.md', 'CHANGELOG.md']) {
    for (const [, target] of read(page).matchAll(/\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)/g)) {
      const file = path.join(root, path.dirname(page), target)
      assert.ok(existsSync(file), `${page} names ${target}`)
    }
  }
})

test('the build links the system OpenSSL when it is there, else builds one, else names the packages', () => {
  const machine = (version, ...tools) => ({ platform: 'linux', systemVersion: () => version, has: (tool) => tools.includes(tool) })
  const system = chooseOpenSsl(undefined, machine('3.0.19'))
  assert.deepEqual(system.features, [])
  assert.match(system.says, /system's OpenSSL 3\.0\.19/)
  const vendored = chooseOpenSsl(undefined, machine(null, 'perl', 'make'))
  assert.deepEqual(vendored.features, ['vendored'])
  assert.match(vendored.says, /built from source/)
  const neither = chooseOpenSsl(undefined, machine(null, 'perl'))
  assert.equal(neither.features, null)
  assert.match(neither.says, /make missing[\s\S]*pkg-config libssl-dev[\s\S]*perl make/)
  assert.deepEqual(chooseOpenSsl('vendored', machine('3.0.19', 'perl', 'make')).features, ['vendored'])
  assert.equal(chooseOpenSsl('system', machine(null, 'perl', 'make')).features, null)
  assert.deepEqual(chooseOpenSsl(undefined, { ...machine(null), platform: 'darwin' }).features, [])
})

test('the total counts what each runner says at its end', () => {
  const nextest = '     Summary [  12.3s] 31 tests run: 29 passed (1 slow), 2 failed, 0 skipped'
  const cargo = 'test result: FAILED. 5 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out'
  const node = '\u001b[34mℹ tests 4\u001b[39m\nℹ pass 3\nℹ fail 1\nℹ cancelled 0'
  assert.deepEqual(countTests(nextest), { passed: 29, failed: 2 })
  assert.deepEqual(countTests(cargo), { passed: 5, failed: 1 })
  assert.deepEqual(countTests(node.replace(/\u001b\[39m/, '')), { passed: 3, failed: 1 })
  assert.deepEqual(countTests('nothing of that kind'), { passed: 0, failed: 0 })
})

test('a part of the tests that does not exist is refused before anything is built', () => {
  const { status, stderr } = spawnSync(process.execPath, [path.join(root, 'scripts/test.mjs'), '--only', 'everything'], { encoding: 'utf8' })
  assert.equal(status, 2)
  assert.match(stderr, /--only rust\|js\|checks/)
})
