// npm run refine: the same random commands against the simulation's model and against PostgreSQL; every answer and the tables
// after each list must be the same.
//
//   npm run refine -- --lists N [--seed S]   lists of the seeds S (default 1) to S+N-1
//   npm run refine -- --seed S --only 1,4,9  some commands of one list
//   npm run refine -- --mutants              also: a model that is broken on purpose is found out
//   npm run refine -- --json                 the last line is { lists, commands, mismatches }
//
// Exit code 0 only when no list shows a mismatch. It starts a server of its own, or uses that of HOLDFAST_TEST_DATABASE_URL.

import { pathToFileURL } from 'node:url'
import { run } from './lib/run.mjs'

/** Builds and runs the refinement on a server; resolves to its exit code and its output. */
export function refine(args, url, options = {}) {
  const cargo = ['run', '--quiet', '--profile', 'sim', '--package', 'holdfast-core', '--features', 'sim', '--bin', 'holdfast-refine', '--', ...args]
  return run('cargo', cargo, { ...options, env: { ...options.env, HOLDFAST_TEST_DATABASE_URL: url } })
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const given = process.env.HOLDFAST_TEST_DATABASE_URL
  const { startTestServer } = given ? {} : await import('./lib/server.mjs')
  const server = given ? { url: given, stop: () => {} } : await startTestServer()
  try {
    const { code } = await refine(process.argv.slice(2), server.url)
    process.exitCode = code
  } finally {
    await server.stop()
  }
}
