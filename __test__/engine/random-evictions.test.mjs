// Random programs on the real engine, with frames kept, never kept, and forgotten by chance: the same commands in history, in
// the same order, and the same end. Each program decides its races itself, so that only replay could make a difference.
//
// A failure names its seed; HOLDFAST_SEED=n runs that one alone, HOLDFAST_RUNS=n as many from a random start.
import assert from 'node:assert/strict'
import { test } from 'node:test'

import { dice } from '../support/dice.mjs'
import { liveWorld, until } from '../support/live.mjs'

const HOUR = 3_600_000

/** A random step, as data. */
function step(roll, depth) {
  const kinds = ['double', 'double', 'fail', 'timer', 'queue', 'child', 'step', 'step', 'flaky', 'read', 'set', 'set', 'clear', 'prune', 'status', 'chance']
  if (depth > 0) kinds.push('all', 'all', 'race', 'race')
  const kind = roll.pick(kinds)
  const found = { kind, name: roll.pick(['a', 'b', 'c']), n: roll.below(100) }
  if (kind === 'all') found.parts = Array.from({ length: 1 + roll.below(3) }, () => waiting(roll, depth - 1))
  // One part ends, the others do not before it: a wait for an event that nobody raises, an hour, an all with such a part.
  if (kind === 'race') found.parts = [waiting(roll, depth - 1), { kind: roll.pick(['never', 'hour', 'allNever']), name: 'x' }]
  return found
}

function waiting(roll, depth) {
  for (;;) {
    const found = step(roll, depth)
    if (!AT_ONCE.includes(found.kind)) return found
  }
}

const AT_ONCE = ['set', 'clear', 'prune', 'status', 'chance']

function program(seed) {
  const roll = dice(seed)
  const steps = (most) => Array.from({ length: 1 + roll.below(most) }, () => step(roll, 2))
  return { steps: steps(6), cleanup: roll.chance(0.4) ? steps(3) : null, again: roll.chance(0.3) ? steps(3) : null }
}

function task(ctx, { kind, name, n, parts }) {
  switch (kind) {
    case 'double':
      return ctx.scheduleActivity('double', n)
    case 'fail':
      return ctx.scheduleActivity('fail', name)
    case 'timer':
      return ctx.scheduleTimer(n % 4)
    case 'queue':
      return ctx.dequeueEvent('numbers')
    case 'child':
      return ctx.scheduleSubOrchestration('kid', n)
    case 'step':
      return ctx.step(name, () => ({ name, n }))
    case 'flaky':
      return ctx.step(name, () => Promise.reject(new Error(`${name} broke`)))
    case 'read':
      return ctx.getValueFromInstance('keeper', name)
    case 'never':
      return ctx.waitForEvent(name)
    case 'hour':
      return ctx.scheduleTimer(HOUR)
    case 'allNever':
      return ctx.all([ctx.scheduleTimer(HOUR), ctx.race(ctx.waitForEvent(name), ctx.waitForEvent('y'))])
    case 'all':
      return ctx.all(parts.map((part) => task(ctx, part)))
    default:
      return ctx.race(...parts.map((part) => task(ctx, part)))
  }
}

async function perform(ctx, steps, results) {
  for (const each of steps) {
    const { kind, name } = each
    if (kind === 'set') ctx.setValue(name, `${ctx.getValue(name)}+`)
    else if (kind === 'clear') ctx.clearValue(name)
    else if (kind === 'prune') results.push(ctx.pruneKvValuesUpdatedBefore(0), ctx.getKvAllValues())
    else if (kind === 'status') ctx.setCustomStatus(name)
    else if (kind === 'chance') results.push(ctx.newGuid().length, ctx.random() < 1, ctx.utcNow() > 0)
    else results.push(await task(ctx, each).catch((error) => error.message))
  }
}

async function main(ctx, { steps, cleanup, again }) {
  const results = []
  await perform(ctx, steps, results)
  if (again !== null) return await ctx.continueAsNew({ steps: again, cleanup, again: null })
  if (cleanup === null) return results
  ctx.setValue('ready', 'yes')
  try {
    await ctx.all([ctx.waitForEvent('never'), ctx.scheduleTimer(HOUR)])
  } finally {
    await perform(ctx, cleanup, results)
    ctx.setCustomStatus(JSON.stringify(results).slice(0, 1000))
  }
}

const HANDLERS = {
  activities: {
    double: (ctx, n) => 2 * n,
    fail: (ctx, name) => {
      throw new Error(`${name} failed`)
    },
  },
  orchestrations: {
    main,
    kid: async (ctx, n) => ((await ctx.scheduleTimer(1)), n + 1),
    keeper: async (ctx) => (ctx.setValue('a', 'kept a'), ctx.setValue('b', 'kept b')),
  },
}

/** What histories have in common however often they were replayed: the commands in order, without times and ids. */
function commandsOf(rows) {
  const facts = ['ActivityCompleted', 'ActivityFailed', 'TimerFired', 'QueueEventDelivered', 'SubOrchestrationCompleted', 'SubOrchestrationFailed', 'OrchestrationStarted']
  return rows
    .filter(({ kind }) => !facts.includes(kind))
    .map(({ execution, kind, data }) => `${execution} ${kind} ${data.replace(/"(fire_at_ms|last_updated_at_ms)":\d+/g, '"$1":0').replace(/::sub::[\d_]+/, '').replace(/"stack":"(\\.|[^"])*",?/, '')}`)
}

/** Runs a program on runtimes of one mode; gives what must be equal. */
async function play(world, id, code) {
  const { client } = world
  for (let i = 0; i < 24; i++) await client.enqueueEvent(id, 'numbers', i)
  await client.startOrchestration(id, 'main', code)
  if (code.cleanup !== null) {
    const wait = client.waitForValue(id, 'ready', 20_000)
    await Promise.race([wait, client.waitForOrchestration(id, 20_000)])
    await client.cancelInstance(id, 'by the test')
  }
  const { status, output, error, customStatus } = await world.end(id)
  const rows = await world.sql('select execution, kind, data from history where instance = $1 order by execution, event_id', [id])
  return { status, output, error: error?.split('\n')[0], customStatus, values: await client.getKvAllValues(id), commands: commandsOf(rows) }
}

test('frames kept, never kept, or forgotten by chance: the same histories', async (t) => {
  const only = process.env.HOLDFAST_SEED
  const runs = only === undefined ? Number(process.env.HOLDFAST_RUNS ?? 24) : 1
  const from = Number(only ?? (process.env.HOLDFAST_RUNS === undefined ? 1 : Math.floor(Math.random() * 2 ** 31)))
  const worlds = []
  for (const { percent, options, nodes } of [
    { percent: '0', options: {}, nodes: 1 },
    { percent: '0', options: { stickyCacheSize: 0 }, nodes: 2 },
    { percent: '50', options: {}, nodes: 2 },
  ]) {
    process.env.HOLDFAST_TEST_EVICT_PERCENT = percent
    const world = await liveWorld(t)
    for (let i = 0; i < nodes; i++) await world.start({ ...HANDLERS, options })
    await world.client.startOrchestration('keeper', 'keeper')
    await until(async () => (await world.client.getStatus('keeper')).status === 'Completed', 'the keeper')
    worlds.push(world)
  }
  process.env.HOLDFAST_TEST_EVICT_PERCENT = '0'
  const seeds = Array.from({ length: runs }, (_, i) => from + i)
  for (let i = 0; i < seeds.length; i += 8) {
    await Promise.all(
      seeds.slice(i, i + 8).map(async (seed) => {
        const [warm, ...others] = await Promise.all(worlds.map((world) => play(world, `p${seed}`, program(seed))))
        for (const other of others) assert.deepEqual(other, warm, `seed ${seed}`)
        assert.ok(!/nondeterministic/.test(warm.error), `seed ${seed}: ${warm.error}`)
      }),
    )
  }
})
