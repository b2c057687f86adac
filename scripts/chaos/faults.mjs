// The faults of a chaos run, in an order made from the seed. In each line every kind comes before any comes again.

import { setTimeout as delay } from 'node:timers/promises'

import pg from 'pg'

/** A generator of numbers in [0, 1): the same seed, the same run of them. */
export function randomFrom(seed) {
  let state = seed >>> 0 || 1
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

export const pick = (random, list) => list[Math.floor(random() * list.length)]

const between = (random, low, high) => low + Math.floor(random() * (high - low))

const FAULTS = {
  async workerKill(world, random) {
    const place = between(random, 0, world.workers.length)
    const child = world.workers[place]
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await gone
    world.kills.push({ pid: child.pid, at: new Date() })
    await delay(between(random, 0, 1500))
    // A busy machine, or a database that is away just now, must not hold up the other faults.
    await Promise.race([world.startWorker(place), delay(3000)])
  },
  async workerPause(world, random) {
    const child = pick(random, world.workers)
    child.kill('SIGSTOP')
    await delay(between(random, 2000, 8000))
    child.kill('SIGCONT')
  },
  async dbStop(world, random) {
    await world.database.stopHard()
    await delay(between(random, 300, 4000))
    await world.database.restart()
  },
  async backendTerminate(world) {
    const client = new pg.Client({ connectionString: world.database.url })
    client.on('error', () => {})
    await client.connect()
    await client.query(`select pg_terminate_backend(pid) from pg_stat_activity
      where pid <> pg_backend_pid() and backend_type = 'client backend' and random() < 0.7`)
    await client.end()
  },
  async netCut(world, random) {
    world.proxy.set('cut')
    await delay(between(random, 500, 3000))
    world.proxy.set('pass')
  },
  async netSlow(world, random) {
    world.proxy.set('slow', between(random, 50, 400))
    await delay(between(random, 1000, 4000))
    world.proxy.set('pass')
  },
  async netBlackhole(world, random) {
    world.proxy.set('blackhole')
    await delay(between(random, 1000, 4000))
    world.proxy.set('pass')
  },
  async netReset(world) {
    world.proxy.reset()
  },
  async bouncerRestart(world, random) {
    if (world.bouncer === null) return false
    await world.bouncer.stop()
    await delay(between(random, 100, 1500))
    await world.bouncer.start()
    return true
  },
  async loopBlock(world, random) {
    pick(random, world.workers).send({ block: between(random, 1000, 7000) })
  },
}

/**
 * Two lines of faults run side by side, so that processes also die while the database is away. Each kind with how often it
 * comes in a round of its line, and the pauses between faults in ms: what stands between the processes and their data gets
 * long enough ones that work goes on at all.
 */
const LINES = [
  { round: { workerKill: 6, workerPause: 1, loopBlock: 1 }, pauseMs: [500, 4000] },
  { round: { dbStop: 2, backendTerminate: 1, netCut: 1, netSlow: 1, netBlackhole: 1, netReset: 1, bouncerRestart: 1 }, pauseMs: [500, 3500] },
]

function shuffled(random, round) {
  const kinds = Object.entries(round).flatMap(([kind, times]) => Array(times).fill(kind))
  for (let i = kinds.length - 1; i > 0; i--) {
    const j = between(random, 0, i + 1)
    ;[kinds[i], kinds[j]] = [kinds[j], kinds[i]]
  }
  return kinds
}

/** Injects faults until `until`; gives the number of each kind. */
export async function inject(world, seed, until, say) {
  const counts = Object.fromEntries(Object.keys(FAULTS).map((kind) => [kind, 0]))
  async function line({ round, pauseMs }, place) {
    const random = randomFrom(seed + 1000 * place)
    while (Date.now() < until) {
      for (const kind of shuffled(random, round)) {
        if (Date.now() >= until) break
        say(kind)
        if ((await FAULTS[kind](world, random)) !== false) counts[kind] += 1
        await delay(between(random, ...pauseMs))
      }
    }
  }
  await Promise.all(LINES.map(line))
  return counts
}
