// The cases of `npm run limits`: each gives its figures, or throws what does not hold.

import assert from 'node:assert/strict'

const DAY = 24 * 3_600_000

/** What the server did so far for the statements of the engine: calls, rows, and blocks of tables and indexes looked at. */
const WORK = `select sum(calls) as calls, sum(rows) as rows, sum(shared_blks_hit + shared_blks_read) as blocks
  from pg_stat_statements where query like '%turn_queue%' or query like '%activity_queue%'`

const cpuMs = () => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

const scaled = (count, scale) => Math.max(10, Math.round(count * scale))

const output = (end) => {
  assert.equal(end.status, 'Completed', end.error)
  return end.output
}

export const CASES = {
  /** Steps one after the other: the work of a step does not grow with those before it. */
  async 'sequential-steps'(world, scale) {
    const count = scaled(2000, scale)
    const span = Math.max(2, Math.min(100, Math.floor(count / 4)))
    const first = Math.min(20, span)
    // The code stands still at these steps, so that what the server did can be read.
    const stops = [first, first + span, count - span, count]
    await world.start(
      {
        main: async (ctx) => {
          for (let i = 1; i <= count; i++) {
            await ctx.scheduleActivity('step', i)
            if (!stops.includes(i)) continue
            ctx.setCustomStatus(String(i))
            await ctx.waitForEvent('go')
          }
          return 'done'
        },
      },
      { step: (ctx, i) => i },
    )
    await world.client.startOrchestration('one', 'main')
    const marks = []
    for (const stop of stops) {
      await world.until(async () => (await world.client.getStatus('one')).customStatus === String(stop), `step ${stop}`)
      const [work] = await world.sql(WORK)
      marks.push({ at: performance.now(), cpu: cpuMs(), calls: Number(work.calls), blocks: Number(work.blocks), rows: Number(work.rows) })
      await world.client.raiseEvent('one', 'go')
      // The next mark begins behind the look.
      const [after] = await world.sql(WORK)
      Object.assign(marks.at(-1), { next: { at: performance.now(), cpu: cpuMs(), calls: Number(after.calls), blocks: Number(after.blocks), rows: Number(after.rows) } })
    }
    assert.equal(output(await world.end('one')), 'done')
    assert.equal(await world.count('history', "kind = 'ActivityCompleted'"), count)
    const { historyRowsRead } = world.stats().counters
    assert.equal(historyRowsRead, 0, 'a kept frame reads no history')
    const perStep = (key, mark) => (marks[mark + 1][key] - marks[mark].next[key]) / span
    const ratio = (key) => perStep(key, 2) / perStep(key, 0)
    if (scale >= 1) for (const key of ['calls', 'rows', 'blocks']) assert.ok(ratio(key) <= 1.5, `${key} of a step grow ${ratio(key)} times`)
    const figures = Object.fromEntries(['calls', 'rows', 'blocks'].map((key) => [`${key}PerStep`, `${perStep(key, 0).toFixed(1)} -> ${perStep(key, 2).toFixed(1)}`]))
    return { count, historyRowsRead, ...figures, cpuMsPerStep: `${perStep('cpu', 0).toFixed(2)} -> ${perStep('cpu', 2).toFixed(2)}`, msPerStep: `${perStep('at', 0).toFixed(2)} -> ${perStep('at', 2).toFixed(2)}`, timeRatio: ratio('at').toFixed(2) }
  },

  /** The same where every turn is a replay on purpose: rows grow with the square, and it still ends. */
  async 'sequential-steps-cold'(world, scale) {
    const count = scaled(200, scale)
    const main = async (ctx) => {
      for (let i = 0; i < count; i++) await ctx.scheduleActivity('step', i)
      return 'done'
    }
    await world.start({ main }, { step: (ctx, i) => i }, { stickyCacheSize: 0 })
    await world.client.startOrchestration('one', 'main')
    assert.equal(output(await world.end('one')), 'done')
    const rowsRead = world.stats().counters.historyRowsRead
    assert.ok(rowsRead <= (count + 2) * (count + 2), `${rowsRead} rows for ${count} steps`)
    return { count, rowsRead }
  },

  /** A fan-out of activities and their join. */
  async 'fan-out'(world, scale) {
    const count = scaled(10_000, scale)
    const main = async (ctx) => {
      const results = await ctx.all(Array.from({ length: count }, (_, i) => ctx.scheduleActivity('double', i)))
      return results.reduce((sum, { ok }) => sum + ok, 0)
    }
    await world.start({ main }, { double: (ctx, n) => 2 * n })
    await world.client.startOrchestration('one', 'main')
    assert.equal(output(await world.end('one')), count * (count - 1))
    assert.equal(await world.count('history', "kind = 'ActivityCompleted'"), count)
    assert.equal(await world.count('activity_queue'), 0)
    return { count, events: await world.count('history') }
  },

  /** Messages that wait for the first turn, read one after the other in it. */
  async 'buffered-messages'(world, scale) {
    const count = scaled(1000, scale)
    for (let from = 0; from < count; from += 100) {
      const batch = Array.from({ length: Math.min(100, count - from) }, (_, i) => world.client.enqueueEvent('one', 'numbers', from + i))
      await Promise.all(batch)
    }
    const main = async (ctx) => {
      let sum = 0
      for (let i = 0; i < count; i++) sum += await ctx.dequeueEvent('numbers')
      return sum
    }
    await world.start({ main })
    await world.client.startOrchestration('one', 'main')
    assert.equal(output(await world.end('one')), (count * (count - 1)) / 2)
    const [{ turns }] = await world.sql('select count(distinct at_ms)::int as turns from history')
    assert.equal(turns, 1, 'all in one turn')
    return { count, turns }
  },

  /** Timers of many instances, all due in the same millisecond. */
  async 'same-instant-timers'(world, scale) {
    const instances = 100
    const each = Math.round(scaled(100_000, scale) / instances)
    const main = async (ctx, due) => {
      const delay = Math.max(0, due - ctx.utcNow())
      await ctx.all(Array.from({ length: each }, () => ctx.scheduleTimer(delay)))
      return ctx.utcNow()
    }
    await world.start({ main })
    // Far away, so that all sleep before the first is due; then the calendar is moved.
    const due = Date.now() + DAY
    for (let i = 0; i < instances; i++) await world.client.startOrchestration(`i${i}`, 'main', due)
    await world.until(async () => (await world.count('inbox', "kind = 'TimerFired'")) === instances * each, 'all timers sleep')
    const dueTimes = await world.sql("select distinct due_at from inbox where kind = 'TimerFired'")
    assert.equal(dueTimes.length, 1, 'one millisecond')
    const from = performance.now()
    await world.sql("with due as (select date_trunc('milliseconds', now()) as at) update inbox set due_at = due.at from due where kind = 'TimerFired'")
    await world.sql('update turn_queue set due_at = now() where owner is null')
    for (let i = 0; i < instances; i++) output(await world.end(`i${i}`))
    const fired = await world.count('history', "kind = 'TimerFired'")
    assert.equal(fired, instances * each)
    assert.equal(await world.count('inbox'), 0)
    return { count: fired, firedPerS: Math.round((1000 * fired) / (performance.now() - from)) }
  },

  /** A timer of sixty days: stored exactly, sleeping through restarts, fired when its time has come. */
  async 'long-timer'(world) {
    const main = async (ctx) => {
      const from = ctx.utcNow()
      await ctx.scheduleTimer(60 * DAY)
      return from
    }
    await world.start({ main })
    await world.client.startOrchestration('one', 'main')
    await world.until(async () => (await world.count('inbox', "kind = 'TimerFired'")) === 1, 'the timer')
    const [{ days }] = await world.sql("select extract(epoch from due_at - now()) / 86400 as days from inbox where kind = 'TimerFired'")
    assert.ok(Number(days) > 59.9 && Number(days) <= 60, `due in ${days} days`)
    await world.stop()
    await world.start({ main })
    assert.equal((await world.client.getStatus('one')).status, 'Running')
    await world.sql("update inbox set due_at = now() where kind = 'TimerFired'")
    await world.sql('update turn_queue set due_at = now() where owner is null')
    output(await world.end('one'))
    return { days: Math.round(days) }
  },

  /** A history of a million events is replayed and goes on; beyond it the instance is refused with the documented error. */
  async 'long-history'(world, scale) {
    const events = scaled(1_000_000, scale)
    const main = async (ctx) => {
      await ctx.waitForEvent('go')
      await ctx.waitForEvent('go')
      return 'went on'
    }
    // Events that nobody reads make the history long with little else, so there are more of them than would be allowed.
    const options = { mailboxLimit: 1_000_000 }
    await world.start({ main }, {}, options)
    await world.client.startOrchestration('one', 'main')
    await world.until(async () => (await world.count('history')) === 2, 'the first turn')
    await world.stop()
    await world.sql(`insert into history_turn (instance, execution, event_id, events, at_ms, kinds, data)
      select 'one', 1, n, 1, at_ms, 'ExternalEvent', '{"name":"noise","data":' || n || '}'
      from generate_series(3, ${events}) n, (select at_ms from history where event_id = 2) last`)
    await world.sql(`update turn_queue set history_len = ${events}`)
    await world.start({ main }, {}, options)
    await world.client.raiseEvent('one', 'go', 1)
    await world.until(async () => (await world.count('history', `event_id > ${events}`)) === 2, 'the turn behind it')
    const rowsRead = world.stats().counters.historyRowsRead
    await world.client.raiseEvent('one', 'go', 2)
    const end = await world.end('one')
    if (scale >= 1) assert.match(end.error, /the history has 1000002 events, more than historyEventLimit \(1000000\): continue as new earlier/)
    else output(end)
    return { count: events, rowsRead, beyond: end.error === undefined ? 'completed' : 'refused with LIMIT_EXCEEDED' }
  },

  /** More commands in one turn than one transaction may hold are refused, and the instance ends. */
  async 'commands-of-a-turn'(world) {
    const main = async (ctx) => await ctx.all(Array.from({ length: 100_001 }, () => ctx.scheduleTimer(1)))
    await world.start({ main })
    await world.client.startOrchestration('one', 'main')
    const { error } = await world.end('one')
    assert.match(error, /one turn gave 100001 commands, more than fanOutLimit \(100000\)/)
    return { error }
  },
}
