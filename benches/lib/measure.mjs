// One measurement in a process of its own: `node measure.mjs SYSTEM WORKLOAD ADMIN_URL [SIZE]`. The last line is its JSON.

import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

import { now, session } from './costs.mjs'
import { WORKLOADS } from './workloads.mjs'

const [, , name, workload, adminUrl, wanted] = process.argv
const module = await import(`../systems/${name}.mjs`)
const plan = WORKLOADS[workload]
const size = Number(wanted ?? module.sizes[workload] ?? plan.size)
const database = `bench_${name}_${process.pid}`.replace(/[^a-z0-9_]/g, '_')
const url = new URL(adminUrl)
url.pathname = `/${database}`

/** Times of the steps are kept only for who asks: they would look like memory of the system. */
const counts = { jobs: 0, times: null }
const hooks = {
  step(value) {
    counts.times?.push(now())
    return value
  },
  end: (value) => value,
  job() {
    counts.jobs += 1
  },
}

function versions() {
  const require = createRequire(import.meta.url)
  const of = (name) => JSON.parse(readFileSync(new URL(`../node_modules/${name}/package.json`, import.meta.url))).version
  const found = Object.fromEntries(module.packages.map((name) => [name, of(name)]))
  return module.packages.length > 0 ? found : { holdfast: require('../../package.json').version }
}

/** Where the memory of this process is measured, it holds the system and its callers and nothing else. */
const admin = plan.alone ? { query: ask, end() {} } : await session(adminUrl)

function ask(sql) {
  execFileSync(process.execPath, [fileURLToPath(new URL('./ask.mjs', import.meta.url)), adminUrl, sql])
}

await admin.query(`create database ${database}`)
let system
try {
  system = await module.open({ url: url.href, hooks, workload, child: false })
  await system.prepare?.()
  const watch = plan.alone ? undefined : await session(url.href)
  const result = await plan.run({ system, name, url: url.href, admin, database, watch, module, size, counts })
  await watch?.end()
  const rssMb = Math.round(process.resourceUsage().maxRSS / 1024)
  console.log(JSON.stringify({ ...result, size, rssMb, settings: module.settings, versions: versions() }))
} catch (error) {
  console.log(JSON.stringify({ error: error?.stack ?? String(error) }))
  process.exitCode = 1
} finally {
  await Promise.race([system?.close(), new Promise((resolve) => setTimeout(resolve, 5000))]).catch(() => {})
  await admin.query(`drop database if exists ${database} with (force)`)
  await admin.end()
}
process.exit()
