// What most tests need: a runtime over the engine in memory, started with the given handlers and stopped after the test.
import { createRequire } from 'node:module'
import { fakeBinding } from './fake-engine.mjs'

const require = createRequire(import.meta.url)

/** The package as a CommonJS user gets it. */
export const holdfast = require('../../index.js')
const { useBinding } = require('../../dist/cjs/native.js')

let serial = 0

/** A provider over an engine in memory of its own. */
export async function fakeProvider(options) {
  const fake = fakeBinding(options)
  useBinding(fake.binding)
  const provider = await holdfast.PostgresProvider.connect(`postgres://fake/${process.pid}-${++serial}`)
  return { ...fake, provider }
}

/** Starts a runtime: `activities` and `orchestrations` by name. Gives the client and what the engine logged. */
export async function startApp(t, { activities = {}, orchestrations = {}, options, cold } = {}) {
  const { provider, binding, log } = await fakeProvider({ cold })
  const runtime = new holdfast.Runtime(provider, options)
  for (const [name, fn] of Object.entries(activities)) runtime.registerActivity(name, fn)
  for (const [name, fn] of Object.entries(orchestrations)) runtime.registerOrchestration(name, fn)
  await runtime.start()
  t.after(() => runtime.shutdown(0))
  return { client: new holdfast.Client(provider), runtime, provider, binding, log }
}

/** Runs one orchestration to its end and gives its result. */
export async function runOnce(t, orchestration, { input, id = 'one', ...rest } = {}) {
  const app = await startApp(t, { ...rest, orchestrations: { ...rest.orchestrations, main: orchestration } })
  await app.client.startOrchestration(id, 'main', input)
  // A bound, not an expectation: large payloads on a busy machine take their time.
  return { ...app, result: await app.client.waitForOrchestration(id, 60_000) }
}
