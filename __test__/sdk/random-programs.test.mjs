// Random programs, run as a generator and as an async function, in random turns and all at once: one behaviour.
//
// A failure prints its seed; HOLDFAST_SEED=n runs that one alone, HOLDFAST_RUNS=n as many from a random start.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dice } from '../support/dice.mjs'
import { cancel, check, done, driverOf, event, fail, queue, START } from '../support/replay.mjs'

const NAMES = ['a', 'b']

/** Kinds that need no waiting. */
const AT_ONCE = ['status', 'chance', 'set', 'clear', 'prune']

/** A random step: what to ask for, as data. */
function step(roll, depth) {
  const kinds = ['activity', 'activity', 'timer', 'event', 'queue', 'child', 'detached', 'read', 'step', 'status', 'chance', 'set', 'clear', 'prune']
  if (depth > 0) kinds.push('all', 'race', 'all', 'race')
  const kind = roll.pick(kinds)
  const parts = kind === 'all' || kind === 'race' ? Array.from({ length: 1 + roll.below(3) }, () => part(roll, depth - 1)) : undefined
  return { kind, name: roll.pick(NAMES), parts, caught: roll.chance(0.8) }
}

function part(roll, depth) {
  const found = step(roll, depth)
  return AT_ONCE.includes(found.kind) ? { ...found, kind: 'timer' } : found
}

function task(ctx, { kind, name, parts }) {
  switch (kind) {
    case 'activity':
      return ctx.scheduleActivity(name, name)
    case 'timer':
      return ctx.scheduleTimer(5)
    case 'event':
      return ctx.waitForEvent(name)
    case 'queue':
      return ctx.dequeueEvent(name)
    case 'child':
      return ctx.scheduleSubOrchestration(name)
    case 'detached':
      return ctx.startOrchestration(name, 'other')
    case 'read':
      return ctx.getValueFromInstance('other', name)
    case 'step':
      return ctx.step(name, () => (name === 'a' ? { made: name } : Promise.reject(new Error('step broke'))))
    case 'all':
      return ctx.all(parts.map((each) => task(ctx, each)))
    default:
      return ctx.race(...parts.map((each) => task(ctx, each)))
  }
}

/** Steps that need no waiting; true when the step was one. */
function act(ctx, { kind, name }, results) {
  if (kind === 'status') ctx.setCustomStatus(name)
  else if (kind === 'chance') results.push([ctx.newGuid(), ctx.random(), ctx.utcNow(), ctx.isCancelled])
  else if (kind === 'set') ctx.setValue(name, `${ctx.getValue(name)}+`)
  else if (kind === 'clear') ctx.clearValue(name)
  else if (kind === 'prune') results.push([ctx.pruneKvValuesUpdatedBefore(ctx.utcNow()), ctx.getKvAllValues()])
  else return false
  return true
}

function forms(program) {
  return {
    *generator(ctx) {
      const results = []
      for (const each of program) {
        if (act(ctx, each, results)) continue
        try {
          results.push(yield task(ctx, each))
        } catch (error) {
          if (!each.caught) throw error
          results.push(error.message)
        }
      }
      return results
    },
    async asynchronous(ctx) {
      const results = []
      for (const each of program) {
        if (act(ctx, each, results)) continue
        try {
          results.push(await task(ctx, each))
        } catch (error) {
          if (!each.caught) throw error
          results.push(error.message)
        }
      }
      return results
    },
  }
}

/** Plays the engine: random facts for what is open, until the program ends or enough has happened. Gives the turns. */
async function play(roll, body) {
  const { turn } = driverOf(body)
  const open = new Set()
  const turns = [[]]
  let seq = 0
  let applied = 0
  let reply = await turn({ h: 1, n: 0, f: [], r: 0, start: START })
  applied = reply.n
  for (let round = 0; round < 40 && reply.o === 'waiting'; round++) {
    for (const command of reply.c) {
      const [[kind, details]] = Object.entries(command)
      if (['activity', 'timer', 'child', 'read'].includes(kind)) open.add(seq)
      if (kind === 'cancel') open.delete(details.seq)
      seq += 1
    }
    const facts = Array.from({ length: 1 + roll.below(4) }, () => fact(roll, open, turns.flat().some(({ t }) => t === 'cancel')))
    turns.push(facts)
    if (facts.some(({ t }) => t === 'cancel')) open.clear()
    reply = await turn({ h: 1, n: applied, f: facts, r: 0 })
    applied = reply.n
  }
  return turns
}

function fact(roll, open, cancelled) {
  if (roll.chance(0.01) && !cancelled) return cancel('by chance')
  if (open.size > 0 && roll.chance(0.7)) {
    const seq = roll.pick([...open])
    open.delete(seq)
    return roll.chance(0.2) ? fail(seq, { message: `failed ${seq}` }) : done(seq, seq)
  }
  return roll.chance(0.5) ? event(roll.pick(NAMES), roll.below(100)) : queue(roll.pick(NAMES), roll.below(100))
}

/** Cuts the same facts into other turns. */
function recut(roll, turns) {
  const result = [[]]
  for (const each of turns.flat()) {
    result.at(-1).push(each)
    if (roll.chance(0.4)) result.push([])
  }
  return result
}

test('generator and async, warm and cold, any cut into turns: the same commands and the same end', async () => {
  const only = process.env.HOLDFAST_SEED
  const runs = only === undefined ? Number(process.env.HOLDFAST_RUNS ?? 300) : 1
  const from = only ?? (process.env.HOLDFAST_RUNS === undefined ? 1 : Math.floor(Math.random() * 2 ** 31))
  for (let seed = Number(from); seed < Number(from) + runs; seed++) {
    const roll = dice(seed)
    const program = Array.from({ length: 1 + roll.below(6) }, () => step(roll, 2))
    const both = forms(program)
    try {
      const turns = await play(roll, both.generator)
      const first = await check({ ...both, turns })
      // Results of local steps come at the end of a turn, so another cut is another history.
      if (JSON.stringify(program).includes('"kind":"step"')) continue
      for (let i = 0; i < 3; i++) {
        const again = await check({ ...both, turns: recut(roll, turns) })
        assert.deepEqual(bare(again), bare(first))
      }
    } catch (error) {
      error.message = `seed ${seed}: ${error.message}`
      throw error
    }
  }
})

/** Without stacks, which name places in the code. */
const bare = (run) => JSON.parse(JSON.stringify(run), (key, value) => (key === 'stack' ? undefined : value))
