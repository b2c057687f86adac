// Compiles the sdk: CommonJS into dist/cjs, ES modules into dist/esm, and the public types into index.d.ts.
//
//   node scripts/build-sdk.mjs          builds
//   node scripts/build-sdk.mjs --check  builds, but fails instead of changing index.d.ts
import { spawnSync } from 'node:child_process'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rollUp } from './rollup-dts.mjs'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')

function compile(project) {
  const { status } = spawnSync(process.execPath, [tsc, '-p', project], { cwd: root, stdio: 'inherit' })
  if (status !== 0) process.exit(status ?? 1)
}

rmSync(join(root, 'dist'), { recursive: true, force: true })
for (const [format, type] of [
  ['cjs', 'commonjs'],
  ['esm', 'module'],
]) {
  compile(`tsconfig.${format}.json`)
  writeFileSync(join(root, 'dist', format, 'package.json'), `{ "type": "${type}" }\n`)
  copyFileSync(join(root, 'sdk/load-binding.cjs'), join(root, 'dist', format, 'load-binding.cjs'))
}

const page = join(root, 'index.d.ts')
const text = rollUp(join(root, 'dist/types/index.d.ts'))
// The second entry is small enough to be read as it is; each format has its copy, so that each module system sees its own.
for (const format of ['cjs', 'esm']) {
  for (const name of ['index.d.ts', 'failure.d.ts']) copyFileSync(join(root, 'dist/types/dev', name), join(root, 'dist', format, 'dev', name))
}
// Only a step on the way: users get the pages.
rmSync(join(root, 'dist/types'), { recursive: true })
if (!process.argv.includes('--check')) {
  writeFileSync(page, text)
} else if (readFileSync(page, 'utf8') !== text) {
  console.error('index.d.ts is not what the sources give: run node scripts/build-sdk.mjs and commit it')
  process.exit(1)
}
