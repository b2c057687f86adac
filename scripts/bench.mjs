// npm run bench: measures this package, and others beside it, on one PostgreSQL in one run.
//
//   npm run bench -- --workload W [--peers a,b] [--runs R] [--size N] [--json]
//   npm run bench -- --workload limit    what the server allows, by itself
//   npm run bench -- --workload tuning   dispatchers, polls and leases against each other: docs/tuning.md
//   npm run bench                        every workload of ours, without peers
//
// Systems are measured in turn, each time in a process and a database of their own, R times (5 unless told otherwise); what is
// printed are the medians and the ratios to ours, above 1 where ours is better. Judges nothing.

import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'

import { median } from '../benches/lib/costs.mjs'
import { LIMITS, limitOf } from '../benches/lib/limit.mjs'
import { WORKLOADS } from '../benches/lib/workloads.mjs'
import { onStop, root, run, title } from './lib/run.mjs'

const benches = path.join(root, 'benches')
const { values: options } = parseArgs({
  options: {
    workload: { type: 'string' },
    peers: { type: 'string', default: '' },
    runs: { type: 'string', default: '5' },
    size: { type: 'string' },
    json: { type: 'boolean', default: false },
    'no-build': { type: 'boolean', default: false },
  },
})
const runs = Number(options.runs)
const ALONE = ['limit', 'tuning']
if (options.workload !== undefined && !ALONE.includes(options.workload) && WORKLOADS[options.workload] === undefined) {
  console.error(`no such workload; there are: ${[...Object.keys(WORKLOADS), ...ALONE].join(', ')}`)
  process.exit(2)
}

async function ready(peers) {
  if (!options['no-build'] && (await run(process.execPath, [path.join(root, 'scripts/build.mjs')])).code !== 0) process.exit(1)
  if (peers.length > 0 && !existsSync(path.join(benches, 'node_modules'))) {
    title('the systems that are measured')
    if ((await run('npm', ['ci', '--prefix', benches])).code !== 0) process.exit(1)
  }
  const { startTestServer } = await import('./lib/server.mjs')
  // What a small production server would have; everything that makes it safe stays on. On a port: not every system
  // understands a socket in a folder.
  const settings = { shared_buffers: '512MB', max_connections: 300, max_wal_size: '4GB', fsync: 'on', synchronous_commit: 'on' }
  const server = await startTestServer({ port: 0, settings })
  onStop(() => server.stop())
  return server
}

/** Some systems need a newer Node.js than this package does; all are measured with the same one. */
function executable() {
  const newer = path.join(benches, 'node_modules/node/bin/node')
  return existsSync(newer) ? newer : process.execPath
}

/** One measurement; what its process wrote last. */
function measure(system, workload, url) {
  const size = options.size === undefined ? [] : [options.size]
  const args = [path.join(benches, 'lib/measure.mjs'), system, workload, url, ...size]
  return new Promise((resolve) => {
    const child = spawn(executable(), args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const timer = setTimeout(() => child.kill('SIGKILL'), WORKLOADS[workload].limitMs ?? 300_000)
    let text = ''
    child.stdout.on('data', (chunk) => {
      text += chunk
    })
    child.on('close', () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(text.trim().split('\n').at(-1)))
      } catch {
        resolve({ error: `gave no result: ${text.slice(-300)}` })
      }
    })
  })
}

/** Measures a workload with each system in turn, and again; `{ figures: Map(system, list), last }`. */
async function series(workload, systems, server) {
  const { unit, what } = WORKLOADS[workload]
  const figures = new Map(systems.map((system) => [system, []]))
  const last = {}
  title(`${workload}: ${what}; PostgreSQL ${server.version}`)
  for (let turn = 1; turn <= runs; turn++) {
    for (const [system, list] of figures) {
      const result = await measure(system, workload, server.url)
      last[system] = result
      if (result.error === undefined) list.push(result.figure)
      const details = JSON.stringify({ ...result.more, ...result.costs, rssMb: result.rssMb })
      console.log(`${turn} ${system}: ${result.error ?? `${result.figure} ${unit} ${details}`}`)
    }
  }
  return { figures, last }
}

async function compare(workload, peers, server) {
  const { unit, better } = WORKLOADS[workload]
  const { figures, last } = await series(workload, ['holdfast', ...peers], server)
  const each = (of) => Object.fromEntries([...figures].map(([system, list]) => [system, of(system, list)]))
  const { holdfast: ours, ...others } = each((_, list) => (list.length > 0 ? median(list) : null))
  const compared = (figure, digits) =>
    figure && ours ? Number((better === 'more' ? ours / figure : figure / ours).toFixed(digits)) : null
  const limit = (await limitOf(workload, server.url)) ?? null
  const ratios = Object.fromEntries(Object.entries(others).map(([system, figure]) => [system, compared(figure, 2)]))
  const limitRatio = compared(limit, 3)
  title(`${workload}: medians of ${runs}`)
  console.log(`holdfast: ${ours} ${unit}${limit === null ? '' : `, ${limitRatio} of the limit ${limit}`}`)
  for (const [system, figure] of Object.entries(others)) console.log(`${system}: ${figure} ${unit}, ours is ${ratios[system]} times as good`)
  const about = (field) => each((system) => last[system][field])
  const { costs, more } = last.holdfast
  const report = { workload, unit, ours, peers: others, ratios, limit, limitRatio, settings: about('settings'), versions: about('versions') }
  if (options.json) console.log(JSON.stringify({ ...report, costs, more, all: Object.fromEntries(figures) }))
  if ([...figures.values()].some((list) => list.length === 0)) process.exitCode = 1
}

/** What the server allows, by itself. */
async function limits(server) {
  const figures = {}
  for (const workload of LIMITS) {
    figures[workload] = await limitOf(workload, server.url)
    console.log(`limit of ${workload}: ${figures[workload]} per second`)
  }
  if (options.json) console.log(JSON.stringify({ workload: 'limit', unit: 'per second', ours: null, peers: {}, ratios: {}, limit: figures, limitRatio: null, settings: {}, versions: { postgresql: server.version } }))
}

/** How the settings of dispatching go together. */
async function curves(server) {
  title('tuning: dispatchers, polls and leases')
  // Needs the package, which is there once it is built.
  const { tuning } = await import('../benches/lib/tuning.mjs')
  const found = await tuning(server.url, (row) => console.log(Object.entries(row).map(([name, value]) => `${name} ${value}`).join('  ')))
  console.table(found.asks)
  console.table(found.leases)
  if (options.json) console.log(JSON.stringify({ workload: 'tuning', unit: 'tables', ours: found, peers: {}, ratios: {}, limit: null, limitRatio: null, settings: {}, versions: { postgresql: server.version } }))
}

const peers = options.peers.split(',').filter(Boolean)
const server = await ready(peers)
if (options.workload === 'limit') await limits(server)
else if (options.workload === 'tuning') await curves(server)
else for (const workload of options.workload === undefined ? Object.keys(WORKLOADS) : [options.workload]) await compare(workload, peers, server)
await server.stop()
