// npm run sim: the real rooms of several engines over a store in memory, on virtual clocks, seed after seed, with faults.
//
//   npm run sim -- --seeds N [--seed S]   seeds S (default 1) to S+N-1, and those that failed in the past; --seed alone: that one
//   npm run sim -- --seed S --trace       what happens in it, event by event
//   npm run sim -- --json                 the last line is { seeds, steps, simulatedSeconds, violations: [{ seed, invariant, text }] }
//
// Exit code 0 only when every invariant held after every step of every seed.

import { pathToFileURL } from 'node:url'
import { run } from './lib/run.mjs'

/** Builds and runs the simulation; resolves to its exit code and its output. */
export function simulate(args, options) {
  const cargo = ['run', '--quiet', '--profile', 'sim', '--package', 'holdfast-core', '--features', 'sim', '--bin', 'holdfast-sim', '--', ...args]
  return run('cargo', cargo, options)
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { code } = await simulate(process.argv.slice(2))
  process.exitCode = code
}
