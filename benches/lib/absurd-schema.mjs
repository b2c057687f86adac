// The tables of absurd, which its command-line tool carries: fetched once with pip into a folder that git ignores.

import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'

const folder = path.join(import.meta.dirname, '../.cache/absurdctl')

export function absurdSchema() {
  if (!existsSync(folder)) {
    execFileSync('python3', ['-m', 'pip', 'install', '--quiet', '--no-deps', '--target', folder, 'absurdctl==0.5.0'], { stdio: ['ignore', 'ignore', 'inherit'] })
  }
  const program = 'import absurdctl; print(absurdctl.BUNDLED_SCHEMA_SQL)'
  return execFileSync('python3', ['-c', program], { env: { ...process.env, PYTHONPATH: folder }, encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 })
}
