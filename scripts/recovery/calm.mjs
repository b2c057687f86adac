// Nodes that are alive under every load that once made nodes look dead: blocked loops below the hang limit, pools that are
// never free, busy cores. Nobody may be declared dead.

import { spawn } from 'node:child_process'
import os from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'

import { SETTINGS } from './kill.mjs'
import { startAll } from './process.mjs'

/** Below the stale age of the fast settings a blocked loop would prove nothing. */
const BLOCK_MS = 8000

/** Runs the load for so long; gives the number of deaths. */
export async function countFalseDeaths({ url, schema, seconds }) {
  const options = SETTINGS.fast
  const part = { url, schema, options }
  const processes = await startAll([
    { ...part, role: 'blocked', blockMs: BLOCK_MS },
    { ...part, role: 'blocked', blockMs: BLOCK_MS / 2 },
    { ...part, role: 'saturated', pool: { maxClients: 1 } },
    { ...part, role: 'rescuer' },
  ])
  const cores = Array.from({ length: os.availableParallelism() }, () =>
    spawn(process.execPath, ['-e', 'process.on("disconnect", () => process.exit()); for (;;);'], { stdio: 'ignore' }),
  )
  try {
    await delay(seconds * 1000)
  } finally {
    for (const core of cores) core.kill('SIGKILL')
  }
  return await stopAndCountDeaths(processes)
}

/** Stops processes; gives how many deaths they tell of. */
export async function stopAndCountDeaths(processes) {
  // A death is seen by whoever recovers and by whoever was declared dead: it is counted where there are more.
  let [deaths, declared] = [0, 0]
  for (const counters of await Promise.all(processes.map((each) => each.stop()))) {
    deaths += counters.nodesRecovered
    declared += counters.declaredDead
  }
  return Math.max(deaths, declared)
}
