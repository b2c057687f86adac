// Drives orchestration code with facts, without an engine, and compares the ways in which it can run.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const { Driver } = require('../../dist/cjs/replay/driver.js')
const { OrchestrationContext } = require('../../dist/cjs/replay/context.js')

export const START = {
  instance: 'one',
  execution: 1,
  name: 'main',
  version: '1.0.0',
  input: null,
  seed: '1234abcd5678ef90',
  atMs: 1000,
  replaying: false,
}

/** A driver of one function; `turn` gives the parsed reply. */
export function driverOf(body, limit = 1e6) {
  const replies = []
  const find = (start) => (frame) => body(new OrchestrationContext(frame), start.input)
  const driver = new Driver(find, (reply) => replies.push(JSON.parse(reply)), limit)
  return {
    driver,
    replies,
    async turn(activation) {
      await driver.run([activation])
      return replies.pop()
    },
  }
}

/** Runs turn by turn in one frame: all commands, and the last reply. */
export async function runWarm(body, turns, start) {
  const { turn } = driverOf(body)
  const commands = []
  const recorded = []
  let reply
  for (const [i, facts] of turns.entries()) {
    const activation = { h: 1, n: recorded.length, f: facts, r: 0 }
    if (i === 0) activation.start = { ...START, ...start }
    reply = await turn(activation)
    commands.push(...reply.c)
    recorded.push(...facts, ...(reply.l ?? []).map(localFact))
    if (reply.o === 'waiting') continue
    recorded.push(...turns.slice(i + 1).flat())
    break
  }
  // The facts as history has them, results of local steps included, are not part of what two runs have in common.
  return Object.defineProperty({ commands, applied: reply.n, outcome: reply.o }, 'recorded', { value: recorded })
}

const localFact = ({ seq, at, ok, err }) => (err === undefined ? { t: 'done', at, seq, value: ok } : { t: 'fail', at, seq, error: err })

/** Runs everything in one cold activation, as replay does. */
export async function runCold(body, turns, start) {
  const facts = turns.flat()
  const reply = await driverOf(body).turn({ h: 1, n: 0, f: facts, r: facts.length, start: { ...START, ...start, replaying: true } })
  return { commands: reply.c, applied: reply.n, outcome: reply.o }
}

/**
 * Runs the generator and the async form, each warm and cold, on the same facts: all four must give the same commands with
 * the same steps and the same end. Gives what they agree on.
 */
export async function check({ generator, asynchronous, turns = [[]], start }) {
  const runs = []
  for (const body of [generator, asynchronous].filter(Boolean)) {
    const warm = await runWarm(body, turns, start)
    runs.push(warm, await runCold(body, [warm.recorded], start))
  }
  for (const run of runs.slice(1)) assert.deepEqual(withoutStack(run), withoutStack(runs[0]))
  return runs[0]
}

/** Stacks name places in the code, which differ between the two forms. */
function withoutStack(run) {
  return JSON.parse(JSON.stringify(run), (key, value) => (key === 'stack' ? undefined : value))
}

/** The commands in short: `activity charge@0`. */
export function short(commands) {
  return commands.map((command) => {
    const [[kind, body]] = Object.entries(command)
    const what = body.name ?? body.seq ?? body.delayMs ?? body.status
    return `${kind} ${what}@${body.step}`
  })
}

let clock = 2000
export const done = (seq, value = null) => ({ t: 'done', at: ++clock, seq, value })
export const fail = (seq, error) => ({ t: 'fail', at: ++clock, seq, error: { name: 'Error', message: 'boom', ...error } })
export const event = (name, data = null) => ({ t: 'event', at: ++clock, name, data })
export const queue = (name, data = null) => ({ t: 'queue', at: ++clock, name, data })
export const cancel = (reason = 'stop') => ({ t: 'cancel', at: ++clock, reason })
