// Compiled, never run: what schemas and typed calls infer, and which misuse of a definition must not compile.
import {
  Client,
  type EventDefinition,
  type MetricsSnapshot,
  type OrchestrationContext,
  type OrchestrationHandle,
  PostgresProvider,
  Runtime,
  SqliteProvider,
  type StandardSchema,
  defineActivity,
  defineEvent,
  defineOrchestration,
  initTracing,
} from 'holdfast'

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const same = <_T extends true>(): void => {}

interface Wire {
  when: string
}
interface Parsed {
  when: Date
}
declare const schema: StandardSchema<Wire, Parsed>
declare const count: StandardSchema<number>

const plan = defineActivity('plan', async (ctx, input) => {
  same<Equal<typeof input, Parsed>>()
  return input.when.getTime() + ctx.attempt
}, { input: schema, output: count })

const main = defineOrchestration('main', async (ctx, input) => {
  same<Equal<typeof input, Parsed>>()
  const time = await ctx.scheduleActivity(plan, { when: input.when.toISOString() })
  same<Equal<typeof time, number>>()
  // @ts-expect-error the wire form holds a text
  ctx.scheduleActivity(plan, { when: new Date() })
  return String(time)
}, { input: schema, version: '2.0.0' })

const counted = defineEvent('counted', { schema: count })
same<Equal<typeof counted, EventDefinition<number>>>()

// @ts-expect-error the result is a text, its schema a number
defineActivity('wrong', async () => 'text', { output: count })
// @ts-expect-error an activity needs its function
defineActivity('missing')
// @ts-expect-error an orchestration needs its function
defineOrchestration('missing')
// @ts-expect-error an activity's function is none of an orchestration
defineOrchestration('confused', plan)
// @ts-expect-error a schema is none of these options
defineActivity('typo', async () => 1, { inputs: schema })

const typed = async (ctx: OrchestrationContext) => {
  const time = await ctx.scheduleActivityTyped(plan, { when: '' })
  same<Equal<typeof time, number>>()
  const [first] = await ctx.allTyped([ctx.scheduleActivity(plan, { when: '' })])
  if (first.err === undefined) same<Equal<typeof first.ok, number>>()
  const event = await ctx.waitForEventTyped(counted)
  same<Equal<typeof event, number>>()
  const child = await ctx.scheduleSubOrchestrationWithIdTyped(main, 'id', { when: '' })
  same<Equal<typeof child, string>>()
  // @ts-expect-error the input is missing
  ctx.scheduleActivityTyped(plan)
  // @ts-expect-error an orchestration is no event
  ctx.dequeueEventTyped(main)
  // @ts-expect-error the retry policy is missing
  ctx.scheduleActivityWithRetryTyped(plan, { when: '' })
}

const provider: PostgresProvider = await SqliteProvider.inMemory()
const client = new Client(provider)
const handle = await client.start(main, { when: '' })
same<Equal<typeof handle, OrchestrationHandle<string>>>()
// @ts-expect-error the wire form holds a text
await client.start(main, { when: new Date() })
// @ts-expect-error the id comes first
await client.startOrchestration(main, 'id', { when: '' })
// @ts-expect-error the event holds a number
await client.raiseEvent('id', counted, 'one')
// @ts-expect-error await is missing
new Client(PostgresProvider.connect())
// @ts-expect-error a URL is no provider
new Client('postgres://localhost')
// @ts-expect-error providers are connected, not made
new SqliteProvider()

const runtime = new Runtime(provider, { logFormat: 'json' })
same<Equal<ReturnType<typeof runtime.metricsSnapshot>, MetricsSnapshot | null>>()
runtime.registerActivityTyped(plan)
runtime.registerOrchestrationVersionedTyped(main, '3.0.0')
// @ts-expect-error an orchestration is no activity
runtime.registerActivity(main)
// @ts-expect-error not a format
new Runtime(provider, { logFormat: 'xml' })
// @ts-expect-error the file is missing
initTracing({ logLevel: 'info' })

export { typed }
