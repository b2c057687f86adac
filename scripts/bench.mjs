// npm run bench: an optimised build, a PostgreSQL of its own, then every program below benches/, one after the other.
//
//   npm run bench -- NAME...   only those whose file name holds one of the names
//
// Prints what the programs print; judges nothing. For numbers to compare, run it on a machine that does nothing else.

import { readdirSync } from 'node:fs'
import path from 'node:path'

import { onStop, root, run, title } from './lib/run.mjs'

const names = process.argv.slice(2)
const files = readdirSync(path.join(root, 'benches')).filter((file) => file.endsWith('.mjs')).sort()
const chosen = files.filter((file) => names.length === 0 || names.some((name) => file.includes(name)))
if (chosen.length === 0) {
  console.error(`no such program; there are: ${files.join(', ')}`)
  process.exit(2)
}
const build = await run(process.execPath, [path.join(root, 'scripts/build.mjs')])
if (build.code !== 0) process.exit(1)
const { startTestServer } = await import('./lib/server.mjs')
const server = await startTestServer()
onStop(() => server.stop())
for (const file of chosen) {
  title(`${file} on PostgreSQL ${server.version}`)
  const { code } = await run(process.execPath, [path.join('benches', file), server.url])
  if (code !== 0) process.exitCode = 1
}
await server.stop()
