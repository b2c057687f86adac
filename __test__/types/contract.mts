// Compiled, never run: what a user may write, and what must not compile.
import holdfast, {
  ActivityFailedError,
  type ActivityContext,
  type ActivityHandle,
  Client,
  type Duration,
  HoldfastError,
  type JsPoolOptions,
  type JsRuntimeOptions,
  type OrchestrationContext,
  type OrchestrationHandle,
  PostgresProvider,
  type RaceResult,
  Runtime,
  type Task,
  defineActivity,
  defineEvent,
  defineOrchestration,
} from 'holdfast'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
/** Fails to compile unless the type argument is `true`; `any` on either side is not equal to a real type. */
const same = <_T extends true>(): void => {}

interface Order {
  id: number
  cents: number
}
interface Receipt {
  order: number
}

const charge = defineActivity('charge', async (ctx, order: Order): Promise<Receipt> => {
  same<Equal<typeof ctx, ActivityContext>>()
  same<Equal<typeof ctx.signal, AbortSignal>>()
  return { order: order.id }
})
const ping = defineActivity('ping', () => 'pong')
const approved = defineEvent<{ by: string }>('approved')

const checkout = defineOrchestration('checkout', async (ctx, order: Order) => {
  same<Equal<typeof ctx, OrchestrationContext>>()
  const receipt = await ctx.scheduleActivity(charge, order)
  same<Equal<typeof receipt, Receipt>>()
  const pong = await ctx.scheduleActivity(ping)
  same<Equal<typeof pong, string>>()
  const decision = await ctx.waitForEvent(approved)
  same<Equal<typeof decision, { by: string }>>()
  const nothing = await ctx.scheduleTimer(5)
  same<Equal<typeof nothing, null>>()

  const [first, second] = await ctx.all([ctx.scheduleActivity(charge, order), ctx.scheduleTimer(5)])
  if (first.err === undefined) same<Equal<typeof first.ok, Receipt>>()
  else same<Equal<typeof first.err, string>>()
  if (second.err === undefined) same<Equal<typeof second.ok, null>>()

  const won = await ctx.race(ctx.scheduleActivity(charge, order), ctx.waitForEvent(approved))
  same<Equal<typeof won, RaceResult<Receipt | { by: string }>>>()
  if (won.error !== true) same<Equal<typeof won.value, Receipt | { by: string }>>()

  const pair = await Promise.all([ctx.scheduleActivity(charge, order), ctx.scheduleActivity<number>('named', 1)])
  same<Equal<typeof pair, [Receipt, number]>>()
  const unknown = await ctx.scheduleActivity('named', 1)
  same<Equal<typeof unknown, unknown>>()

  // @ts-expect-error the input is an order
  ctx.scheduleActivity(charge, 5)
  // @ts-expect-error the input is missing
  ctx.scheduleActivity(charge)
  // @ts-expect-error no such option
  ctx.scheduleActivity(charge, order, { timeout: 5 })
  // @ts-expect-error an event is not an activity
  ctx.scheduleActivity(approved, order)
  // @ts-expect-error an orchestration is not an activity
  ctx.scheduleActivity(checkout, order)
  // @ts-expect-error an activity is not an event
  ctx.waitForEvent(charge)
  // @ts-expect-error not a number of ms
  ctx.scheduleTimer('5s')
  // @ts-expect-error contexts are made by the runtime
  new ctx.constructor()
  return receipt
})

defineOrchestration('generator', function* (ctx, order: Order) {
  const receipt = yield* ctx.scheduleActivity(charge, order)
  same<Equal<typeof receipt, Receipt>>()
  const child = yield* ctx.scheduleSubOrchestration(checkout, order)
  same<Equal<typeof child, Receipt>>()
  const [one] = yield* ctx.all([ctx.scheduleActivity(ping)])
  if (one.err === undefined) same<Equal<typeof one.ok, string>>()
  const plain: unknown = yield ctx.scheduleActivity(ping)
  // @ts-expect-error the child takes an order
  yield* ctx.scheduleSubOrchestrationWithId(checkout, 'id', 'order')
  // @ts-expect-error the child's input is missing
  yield* ctx.startOrchestration(checkout, 'id')
  return [receipt, child, plain]
})

const provider = await PostgresProvider.connect(undefined, { maxClients: 4, acquireTimeoutMs: '5s' })
const options: JsRuntimeOptions = { orchestrationConcurrency: 64, maxAttempts: 10, staleAfterMs: '1m' }
const runtime = new Runtime(provider, options)
runtime.registerActivity(charge)
runtime.registerActivity('inline', async (_ctx, order: Order) => order.cents)
runtime.registerOrchestration(checkout)
runtime.registerOrchestration('inline', async (ctx, order: Order) => await ctx.scheduleActivity(charge, order))
runtime.registerOrchestration('typed by hand', function* (ctx: OrchestrationContext, input: unknown): Generator<Task, number, string> {
  const word = yield ctx.scheduleActivity('word', input)
  return word.length
})
for (const activity of [charge, ping]) runtime.registerActivity(activity)
for (const orchestration of [checkout, defineOrchestration('other', async (_ctx, word: string) => word)]) runtime.registerOrchestration(orchestration)
// @ts-expect-error a name needs a function
runtime.registerActivity('missing')
// @ts-expect-error an activity is not an orchestration
runtime.registerOrchestration(charge)
// @ts-expect-error a plain function neither waits nor yields
runtime.registerOrchestration('plain', () => 5)
// @ts-expect-error unknown option
new Runtime(provider, { workers: 5 })
// @ts-expect-error not a duration
const wrong: Duration = '5 minutes'
const poolOptions: JsPoolOptions = { pooled: 'auto', directUrl: 'postgresql://direct/app' }
// @ts-expect-error providers are connected, not made
new PostgresProvider()

const client = new Client(provider)
const handle = await client.start(checkout, { id: 1, cents: 2 }, { id: 'order-1' })
same<Equal<typeof handle, OrchestrationHandle<Receipt>>>()
const receipt = await handle.result()
same<Equal<typeof receipt, Receipt>>()
await handle.raise(approved, { by: 'me' })
await client.startOrchestration('order-2', checkout, { id: 1, cents: 2 })
await client.startOrchestration('order-3', 'by name', { anything: true })
await client.startOrchestrationVersioned('order-4', 'by name', null, '1.0.0')
const done = await client.waitForOrchestration<Receipt>('order-2')
same<Equal<typeof done.output, Receipt | undefined>>()
await client.raiseEvent('order-2', approved, { by: 'me' })
await client.raiseEvent('order-2', 'by name')
// @ts-expect-error the event's data has another shape
await handle.raise(approved, { by: 5 })
// @ts-expect-error the event's data is missing
await client.raiseEvent('order-2', approved)
// @ts-expect-error the input is an order
await client.start(checkout, 'order')
// @ts-expect-error the input is missing
await client.startOrchestration('order-5', checkout)

const other = defineOrchestration('other', async (_ctx, word: string) => word)
await client.startMany([
  { orchestration: checkout, input: { id: 1, cents: 2 } },
  { orchestration: other, input: 'word', id: 'w' },
  { orchestration: 'by name', input: 5 },
])
const orders: Order[] = []
await client.startMany(orders.map((order) => ({ orchestration: checkout, id: `order-${order.id}`, input: order })))
const mixed = [{ orchestration: checkout, input: { id: 1, cents: 2 } }, { orchestration: other, input: 'word' }]
await client.startMany(mixed)
// @ts-expect-error the input is an order
await client.startMany([{ orchestration: checkout, input: 'order' }, { orchestration: other, input: 'word' }])
// @ts-expect-error the input is missing
await client.startMany([{ orchestration: checkout }])
const [receiptOf, pongOf, someOf] = await client.enqueueActivities([
  { activity: charge, input: { id: 1, cents: 2 } },
  { activity: ping },
  { activity: 'by name', input: 5 },
])
same<Equal<typeof receiptOf, ActivityHandle<Receipt>>>()
same<Equal<typeof pongOf, ActivityHandle<string>>>()
same<Equal<typeof someOf, ActivityHandle<unknown>>>()
const charged = await client.enqueueActivities(orders.map((order) => ({ activity: charge, input: order })))
same<Equal<typeof charged, ActivityHandle<Receipt>[]>>()
// @ts-expect-error the input is an order
await client.enqueueActivities([{ activity: charge, input: 5 }])
// Every call can be given up: its options come last.
const { signal } = new AbortController()
await client.startOrchestration('order-6', checkout, { id: 1, cents: 2 }, { signal })
await client.startOrchestrationTyped('order-6', 'by name', null, { signal })
await client.startOrchestrationVersioned('order-6', 'by name', null, '1.0.0', { signal })
await client.startOrchestrationVersionedTyped('order-6', 'by name', null, '1.0.0', { signal })
await client.startMany([{ orchestration: checkout, input: { id: 1, cents: 2 } }], { signal })
await client.cancelInstance('order-6', 'why', { signal })
await client.enqueueActivity(charge, { id: 1, cents: 2 }, { id: 'job', signal })
await client.enqueueActivities([{ activity: charge, input: { id: 1, cents: 2 } }], { signal })
await client.listInstances({}, { signal })
await client.pruneExecutions('order-6', { signal })
await client.activityHandle('job').cancel('why', { signal })
// @ts-expect-error a signal is an AbortSignal
await client.cancelInstance('order-6', 'why', { signal: 'now' })
// @ts-expect-error the options come after the input
await client.startOrchestration('order-6', checkout, { signal })

try {
  await client.waitForOrchestrationTyped<Receipt>('order-2', 1000)
} catch (error) {
  if (error instanceof ActivityFailedError) same<Equal<typeof error.activityName, string>>()
  if (error instanceof HoldfastError) same<Equal<typeof error.retryAfterMs, number | undefined>>()
}
same<Equal<typeof holdfast.Runtime, typeof Runtime>>()
export { wrong, poolOptions }
