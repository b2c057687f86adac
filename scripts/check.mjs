// npm run check: everything about the sources that a machine can judge without running the tests.
//
// Runs every check even when one fails, and says at the end which did.

import { existsSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

import { ask, bin, root, run, title } from './lib/run.mjs'

const cargo = (...args) => () => run('cargo', args)

async function contractUnchanged() {
  if (ask('git', ['rev-parse', '--git-dir']) === null) {
    console.log('not a git checkout: nothing to compare with')
    return { code: 0 }
  }
  const result = await run('git', ['--no-pager', 'diff', '--exit-code', '--', 'index.d.ts', 'index.d.mts'])
  if (result.code !== 0) console.error('index.d.ts is not the committed one: a change of the public contract is reviewed, then staged')
  return result
}

/** Every project file of the TypeScript part, and the tests' own. */
function typescript() {
  const projects = ['tsconfig.json', 'sdk/tsconfig.json', '__test__/tsconfig.json', 'examples/tsconfig.json']
  return projects
    .filter((project) => existsSync(path.join(root, project)))
    .map((project) => [`types of ${project}`, () => run(bin('tsc'), ['--noEmit', '-p', project])])
}

/** Runs the checks; resolves to the names of those that passed and those that failed. */
export async function check() {
  const checks = [
    ['format', cargo('fmt', '--all', '--check')],
    ['lints', cargo('clippy', '--workspace', '--all-targets', '--quiet', '--', '-D', 'warnings')],
    ['tidy', cargo('xtask', 'tidy')],
    ...typescript(),
    ['public contract', contractUnchanged],
  ]
  const passed = []
  const failed = []
  for (const [name, act] of checks) {
    title(`check: ${name}`)
    const { code } = await act()
    ;(code === 0 ? passed : failed).push(name)
  }
  return { passed, failed }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { passed, failed } = await check()
  title('checks')
  console.log(`${passed.length} passed, ${failed.length} failed${failed.length > 0 ? `: ${failed.join(', ')}` : ''}`)
  process.exitCode = failed.length > 0 ? 1 : 0
}
