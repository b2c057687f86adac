// A tour: one orchestration for each thing that a program does with orchestrations. docs/guide.md explains the parts.
import { Client, PostgresProvider, Runtime, defineActivity, defineEvent, defineOrchestration } from 'holdfast'

const provider = await PostgresProvider.connectWithSchema(process.env.TOUR_DATABASE_URL, process.env.TOUR_SCHEMA ?? 'tour')
const runtime = new Runtime(provider)
const client = new Client(provider)

runtime.registerActivity('price', async (_ctx, item) => item.length * 100)
let trials = 0
runtime.registerActivity('flaky', async () => {
  trials += 1
  if (trials < 3) throw new Error('not yet')
  return `worked at try ${trials}`
})

runtime.registerOrchestration('retry', async (ctx) => {
  return await ctx.scheduleActivity('flaky', null, {
    retry: { maxAttempts: 5, backoff: 'exponential', baseDelayMs: 20, nonRetryable: ['CardDeclined'] },
  })
})

runtime.registerOrchestration('sideBySide', async (ctx, items) => {
  const parts = await ctx.all(items.map((item) => ctx.scheduleActivity('price', item)))
  const failed = parts.filter((part) => 'err' in part)
  return { failed: failed.length, sum: parts.reduce((sum, part) => sum + (part.ok ?? 0), 0) }
})

runtime.registerOrchestration('approval', async (ctx) => {
  const { index, value } = await ctx.race(ctx.waitForEvent('approved'), ctx.scheduleTimer(3 * 86_400_000))
  return index === 0 ? `approved by ${value.by}` : 'nobody answered in three days'
})

runtime.registerOrchestration('inbox', async (ctx) => {
  const seen = []
  for (;;) {
    const message = await ctx.dequeueEvent('messages')
    if (message === 'stop') return seen
    seen.push(message)
    ctx.setCustomStatus(`${seen.length} messages`)
  }
})

runtime.registerOrchestration('parent', async (ctx) => {
  const sum = await ctx.scheduleSubOrchestration('sideBySide', ['pen', 'ink'])
  await ctx.startOrchestration('sideBySide', `${ctx.instanceId}-audit`, ['paper'])
  return sum
})

runtime.registerOrchestration('cleanUp', async (ctx) => {
  try {
    await ctx.waitForEvent('never')
  } finally {
    if (ctx.isCancelled) await ctx.scheduleActivity('price', 'refund')
  }
})

runtime.registerOrchestration('poller', async (ctx, state) => {
  const price = await ctx.scheduleActivity('price', 'x'.repeat(state.round))
  if (price >= 300) return { rounds: state.round, price }
  await ctx.scheduleTimer(10)
  return ctx.continueAsNew({ round: state.round + 1 })
})

runtime.registerOrchestration('counter', async (ctx) => {
  for (let i = 0; i < 3; i++) {
    ctx.setValue('count', String(Number(ctx.getValue('count') ?? '0') + 1))
    await ctx.scheduleTimer(1)
  }
  return ctx.getValue('count')
})

runtime.registerOrchestration('generator', function* (ctx, item) {
  const price = yield ctx.scheduleActivity('price', item)
  const [again] = yield ctx.all([ctx.scheduleActivity('price', item)])
  return price + again.ok
})

const charge = defineActivity('charge', async (ctx, order) => ({ order: order.id, key: ctx.idempotencyKey }))
const shipped = defineEvent('shipped')
const sale = defineOrchestration('sale', async (ctx, order) => {
  const receipt = await ctx.scheduleActivity(charge, order)
  return { ...receipt, track: await ctx.waitForEvent(shipped) }
})
runtime.registerActivity(charge)
runtime.registerOrchestration(sale)

await runtime.start()

async function run(name, input, during = async () => {}) {
  await client.startOrchestration(name, name, input)
  await during(name)
  const { status, output, error } = await client.waitForOrchestration(name)
  console.log(`${name}: ${status} ${JSON.stringify(output ?? error)}`)
}

await run('retry')
await run('sideBySide', ['pen', 'paper'])
await run('approval', undefined, (id) => client.raiseEvent(id, 'approved', { by: 'Ada' }))
await run('inbox', undefined, async (id) => {
  for (const message of ['one', 'two', 'stop']) await client.enqueueEvent(id, 'messages', message)
})
await run('parent')
await run('cleanUp', undefined, async (id) => {
  while ((await client.getStatus(id)).status === 'NotFound') await new Promise((resolve) => setTimeout(resolve, 20))
  await client.cancelInstance(id, 'changed my mind')
})
await run('poller', { round: 1 })
await run('counter')
await run('generator', 'pen')

const handle = await client.start(sale, { id: 17 }, { id: 'sale-17' })
await handle.raise(shipped, 'parcel 5')
const result = await handle.result()
console.log(`sale: ${JSON.stringify(result)}`)

await runtime.shutdown()
await provider.close()
