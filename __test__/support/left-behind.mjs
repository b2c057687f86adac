// Run as a process of its own: orchestration code leaves rejected promises behind, also because of a cancellation.
import { fakeProvider, holdfast } from './app.mjs'

const { provider } = await fakeProvider()
const runtime = new holdfast.Runtime(provider)
runtime.registerActivity('a', () => 'still here')
runtime.registerOrchestration('main', async (ctx) => {
  void (async () => {
    throw new Error('left behind')
  })()
  return await ctx.scheduleActivity('a')
})
runtime.registerOrchestration('cancelled', async (ctx) => {
  const wait = async () => await ctx.waitForEvent('never')
  const [first, second] = [wait(), wait()]
  await first
  await second
})
await runtime.start()
const client = new holdfast.Client(provider)
await client.startOrchestration('one', 'main')
console.log((await client.waitForOrchestration('one')).output)
await client.startOrchestration('two', 'cancelled')
await client.cancelInstance('two', 'enough')
console.log((await client.waitForOrchestration('two')).error)
await runtime.shutdown()
if (process.argv[2] === 'foreign') {
  const again = new holdfast.Runtime(provider)
  await again.start()
  void Promise.reject(new Error('not from an orchestration'))
  await new Promise((resolve) => setTimeout(resolve, 1000))
  console.log('must not be reached')
}
