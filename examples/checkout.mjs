import { Client, PostgresProvider, Runtime } from 'holdfast'

// Without a URL: HOLDFAST_DATABASE_URL, then DATABASE_URL, then a server started for this project.
const provider = await PostgresProvider.connect()
const runtime = new Runtime(provider, { orchestrationConcurrency: 64 })

runtime.registerActivity('charge', async (ctx, order) => {
  // An effect can happen more than once: pass the key on to what you call.
  return { order: order.id, cents: order.cents, key: ctx.idempotencyKey }
})
runtime.registerActivity('mail', async (ctx, receipt) => `receipt for order ${receipt.order}`)

runtime.registerOrchestration('checkout', async (ctx, order) => {
  const receipt = await ctx.scheduleActivity('charge', order)
  // Side by side; each gives { ok } or { err }, so that one failure does not hide the other's result.
  const [sent] = await ctx.all([ctx.scheduleActivity('mail', receipt), ctx.scheduleTimer(50)])
  return { cents: receipt.cents, sent }
})
await runtime.start()

const client = new Client(provider)
await client.startOrchestration('order-17', 'checkout', { id: 17, cents: 4200 })
const done = await client.waitForOrchestration('order-17')
console.log(done.status, JSON.stringify(done.output))

await runtime.shutdown()
await provider.close()
