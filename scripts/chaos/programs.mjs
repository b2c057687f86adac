// The orchestrations of a chaos run. Each has the output that it must come to, computed apart from the engine.

/** Kinds of workflows: `expected(n)`, and the messages that the client sends to each. */
export const PROGRAMS = {
  chain: { expected: (n) => n + 4, messages: () => [] },
  fan: { expected: (n) => 5 * n + 15, messages: () => [] },
  timer: { expected: (n) => n + 1, messages: () => [] },
  event: { expected: (n) => n + 1001, messages: () => [{ send: 'raiseEvent', name: 'go', data: 1000 }] },
  queue: {
    expected: (n) => n + 112,
    messages: () => [1, 10, 100].map((data) => ({ send: 'enqueueEvent', name: 'in', data })),
  },
  child: { expected: (n) => n + 5, messages: () => [] },
  again: { expected: (n) => n + 3, messages: () => [] },
  race: { expected: (n) => n + 1, messages: () => [] },
}

export const KINDS = Object.keys(PROGRAMS)

/** Registers them on a runtime. The activity `effect` leaves a mark outside of the engine and gives `n + 1`. */
export function registerPrograms(runtime, effect) {
  runtime.registerActivity('effect', effect)
  runtime.registerOrchestration('chain', async (ctx, { n, ms }) => {
    let last = n
    for (let i = 0; i < 4; i++) last = await ctx.scheduleActivity('effect', { n: last, ms })
    return last
  })
  runtime.registerOrchestration('fan', async (ctx, { n, ms }) => {
    const parts = Array.from({ length: 5 }, (_, i) => ctx.scheduleActivity('effect', { n: n + i, ms }))
    const values = await ctx.all(parts)
    return values.reduce((sum, { ok }) => sum + ok, 0)
  })
  runtime.registerOrchestration('timer', async (ctx, { n, ms }) => {
    await ctx.scheduleTimer(ms * 5)
    return await ctx.scheduleActivity('effect', { n, ms })
  })
  runtime.registerOrchestration('event', function* (ctx, { n, ms }) {
    const data = yield ctx.waitForEvent('go')
    return yield ctx.scheduleActivity('effect', { n: n + data, ms })
  })
  runtime.registerOrchestration('queue', function* (ctx, { n, ms }) {
    let sum = n
    for (let i = 0; i < 3; i++) sum += yield ctx.dequeueEvent('in')
    return yield ctx.scheduleActivity('effect', { n: sum, ms })
  })
  runtime.registerOrchestration('child', async (ctx, input) => {
    const n = await ctx.scheduleSubOrchestration('chain', input)
    return await ctx.scheduleActivity('effect', { n, ms: input.ms })
  })
  runtime.registerOrchestration('again', async (ctx, { n, ms, round = 1 }) => {
    const next = await ctx.scheduleActivity('effect', { n, ms })
    if (round < 3) await ctx.continueAsNew({ n: next, ms, round: round + 1 })
    return next
  })
  runtime.registerOrchestration('race', async (ctx, { n, ms }) => {
    const { index, value } = await ctx.race(ctx.scheduleActivity('effect', { n, ms }), ctx.scheduleTimer(24 * 3_600_000))
    if (index !== 0) throw new Error('the timer of a day came first')
    return value
  })
}
