import { Client, PostgresProvider, Runtime, defineActivity, defineOrchestration } from 'holdfast'

type Order = { id: number; cents: number }
type Receipt = { order: number; cents: number; key: string }

// Passed in place of a name, a definition carries the types of what goes in and what comes out.
const charge = defineActivity('charge', async (ctx, order: Order): Promise<Receipt> => {
  return { order: order.id, cents: order.cents, key: ctx.idempotencyKey }
})
const mail = defineActivity('mail', async (_ctx, receipt: Receipt): Promise<string> => `receipt for order ${receipt.order}`)

const checkout = defineOrchestration('checkout', async (ctx, order: Order) => {
  const receipt = await ctx.scheduleActivity(charge, order)
  const [sent] = await ctx.all([ctx.scheduleActivity(mail, receipt), ctx.scheduleTimer(50)])
  return { cents: receipt.cents, sent }
})

const provider = await PostgresProvider.connect()
const runtime = new Runtime(provider, { orchestrationConcurrency: 64 })
runtime.registerActivity(charge)
runtime.registerActivity(mail)
runtime.registerOrchestration(checkout)
await runtime.start()

const client = new Client(provider)
await client.startOrchestration('order-19', checkout, { id: 19, cents: 4200 })
const done = await client.waitForOrchestration('order-19')
console.log(done.status, JSON.stringify(done.output))

await runtime.shutdown()
await provider.close()
