const { Client, PostgresProvider, Runtime } = require('holdfast')

async function main() {
  const provider = await PostgresProvider.connect()
  const runtime = new Runtime(provider, { orchestrationConcurrency: 64 })

  runtime.registerActivity('charge', async (ctx, order) => ({ order: order.id, cents: order.cents, key: ctx.idempotencyKey }))
  runtime.registerActivity('mail', async (ctx, receipt) => `receipt for order ${receipt.order}`)

  // A generator function does the same as an async function: yield in place of await.
  runtime.registerOrchestration('checkout', function* (ctx, order) {
    const receipt = yield ctx.scheduleActivity('charge', order)
    const [sent] = yield ctx.all([ctx.scheduleActivity('mail', receipt), ctx.scheduleTimer(50)])
    return { cents: receipt.cents, sent }
  })
  await runtime.start()

  const client = new Client(provider)
  await client.startOrchestration('order-18', 'checkout', { id: 18, cents: 4200 })
  const done = await client.waitForOrchestration('order-18')
  console.log(done.status, JSON.stringify(done.output))

  await runtime.shutdown()
  await provider.close()
}

main()
