// npm run demo [-- FOLDER] [--json]: a pipeline over real files, 64 at a time, that loses its worker to a SIGKILL
// half-way and is finished by another one. Afterwards SQL over the demo's tables says what was lost and what doubled.
//
//   FOLDER       every file below it; without one, the project's own sources
//   --json       the last line of standard output is one JSON object; progress goes to standard error
//   --sql TEXT   no run: shows the rows of a statement over the last run's data
//   --serve      no run: keeps the data's server up and says how to connect, until Ctrl-C
//
// It uses HOLDFAST_DATABASE_URL when that is set, else a server of its own, which ends with it. Exit code 0 means that
// every file is in the index exactly once although the worker was killed.
import { existsSync, readdirSync, statSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { ask, onStop, root, run } from './lib/run.mjs'

const usage = 'usage: npm run demo -- [FOLDER] [--json] [--sql TEXT | --serve]'

function readArguments() {
  try {
    const options = { json: { type: 'boolean', default: false }, sql: { type: 'string' }, serve: { type: 'boolean', default: false } }
    const { values, positionals } = parseArgs({ options, allowPositionals: true })
    if (positionals.length > 1) throw new Error(`one folder at most, not ${positionals.length}`)
    const [folder] = positionals
    if (folder !== undefined && !statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw new Error(`${folder} is not a folder`)
    return { ...values, folder: folder === undefined ? undefined : path.resolve(folder) }
  } catch (error) {
    console.error(`${error.message}\n${usage}`)
    process.exit(2)
  }
}

/** Builds what is missing. A build that is there is used as it is: whether it is fresh is the business of npm run build. */
async function build() {
  const hasAddon = readdirSync(root).some((name) => /^holdfast\..*\.node$/.test(name))
  if (hasAddon && existsSync(path.join(root, 'dist/esm/index.js'))) return
  if (ask(process.execPath, ['-e', 'require.resolve("typescript")']) === null) {
    console.error('the packages are not installed: run npm ci first')
    process.exit(2)
  }
  // Unoptimised, because it is there minutes sooner and the demo is about what survives, not about speed.
  const { code } = await run(process.execPath, [path.join(root, 'scripts/build.mjs')], { env: { HOLDFAST_PROFILE: 'dev' } })
  if (code !== 0) process.exit(1)
}

async function openDatabase() {
  const url = process.env.HOLDFAST_DATABASE_URL
  if (url) return { url, says: 'the database of HOLDFAST_DATABASE_URL', stop: async () => undefined }
  const { EmbeddedPostgres } = await import('./lib/embedded.mjs')
  const server = await EmbeddedPostgres.start({ persistent: true, database: 'demo' })
  return { url: server.url, says: `PostgreSQL ${server.version}, started for the demo`, stop: () => server.stop() }
}

const options = readArguments()
await build()
const { connectPool, runDemo } = await import('./lib/demo-run.mjs')
const { printReport, printRows } = await import('./lib/demo-report.mjs')
const database = await openDatabase()
onStop(database.stop)
try {
  if (options.sql !== undefined) {
    const db = connectPool(database.url)
    try {
      printRows(await db.query(options.sql))
    } finally {
      await db.end()
    }
  } else if (options.serve) {
    console.log(`psql '${database.url}'\nCtrl-C ends the server.`)
    await new Promise(() => setInterval(() => undefined, 60_000))
  } else {
    const say = options.json ? process.stderr : process.stdout
    say.write(`${database.says}\n`)
    const report = await runDemo({ url: database.url, folder: options.folder, say })
    printReport(report, database, say)
    if (options.json) console.log(JSON.stringify(report.figures))
    process.exitCode = report.holds ? 0 : 1
  }
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
} finally {
  await database.stop()
}
