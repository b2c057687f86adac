// A worker of the demo, in a process of its own so that it can be killed. It takes work until it is told to stop, or its
// starter is gone.
//
//   node worker.mjs URL [HOLD-AFTER]
//
// With HOLD-AFTER it is the victim: once that many files are indexed by it, every step that has done its work waits
// instead of answering. That is the worst moment for a SIGKILL: the effects have happened and are not recorded.
import pg from 'pg'
import { PostgresProvider, Runtime } from '../../index.mjs'
import { registerPipeline } from './pipeline.mjs'

const [url, holdAfter] = process.argv.slice(2)
const db = new pg.Pool({ connectionString: url, max: 8 })
const provider = await PostgresProvider.connect(url)
const runtime = new Runtime(provider, {
  orchestrationConcurrency: 64,
  workerConcurrency: 64,
  // A dead worker's work goes on after two seconds instead of half a minute; the price is two heartbeats a second.
  heartbeatIntervalMs: 500,
  staleAfterMs: 2000,
})

let indexed = 0
let held = 0
registerPipeline(runtime, db, async (step) => {
  if (holdAfter !== undefined && indexed >= Number(holdAfter)) {
    process.send({ held: ++held, indexed })
    await new Promise(() => undefined)
  }
  if (step === 'index') indexed += 1
})

let stopping
function stop() {
  stopping ??= (async () => {
    await runtime.shutdown(5000)
    await provider.close()
    await db.end()
    if (process.connected) process.disconnect()
  })()
}
process.on('message', (message) => { if (message === 'stop') stop() })
process.on('disconnect', stop)
process.on('SIGTERM', stop)
process.on('SIGINT', () => undefined) // Ctrl-C reaches the whole group; the starter decides what happens

await runtime.start()
process.send({ ready: true })
