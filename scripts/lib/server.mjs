// The PostgreSQL of the test suites and scripts: a temporary server of the project's own starter.
// Needs the compiled sdk, which the build has made before any suite runs.
//   node scripts/lib/server.mjs COMMAND [ARGUMENT ...]   runs a command with HOLDFAST_TEST_DATABASE_URL set to a server
import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { EmbeddedPostgres } from './embedded.mjs'

/** Starts a server for tests: `{ url, version, stop() }`. It ends with this process, however this process ends. */
export async function startTestServer({ binDir, port, settings = {} } = {}) {
  const server = await EmbeddedPostgres.start({
    ...(binDir === undefined ? {} : { binDir }),
    ...(port === undefined ? {} : { port }),
    // The suites run in parallel, each with its own pools; the statement counts are what some tests assert.
    settings: { max_connections: 400, shared_preload_libraries: 'pg_stat_statements', ...settings },
  })
  return { url: server.url, version: server.version, stop: () => server.stop() }
}

/** Folders with the programs of PostgreSQL versions installed on this machine, the newest first. */
export function installedServers() {
  try {
    return readdirSync('/usr/lib/postgresql').sort((a, b) => Number(b) - Number(a)).map((version) => `/usr/lib/postgresql/${version}/bin`)
  } catch {
    return []
  }
}

/** Runs a command with the URL of a fresh server in HOLDFAST_TEST_DATABASE_URL; resolves to its exit code. */
export async function runWithServer([command, ...args], options) {
  const server = await startTestServer(options)
  try {
    const child = spawn(command, args, { stdio: 'inherit', env: { ...process.env, HOLDFAST_TEST_DATABASE_URL: server.url } })
    return await new Promise((resolve, reject) => {
      child.on('error', reject)
      child.on('exit', (code) => resolve(code ?? 1))
    })
  } finally {
    await server.stop()
  }
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  if (process.argv.length < 3) {
    console.error('usage: node scripts/lib/server.mjs COMMAND [ARGUMENT ...]')
    process.exitCode = 2
  } else {
    process.exitCode = await runWithServer(process.argv.slice(2))
  }
}
