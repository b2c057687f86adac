// A process of the livelock deployment. Configuration: JSON in HOLDFAST_LIVELOCK: { url, pool, options }. Turns of instances
// whose id begins with `poison-` get lost before their commit: the parent sets HOLDFAST_TEST_DROP_TURNS_OF.

import { PostgresProvider, Runtime } from '../../index.mjs'

const { url, pool, options } = JSON.parse(process.env.HOLDFAST_LIVELOCK)
const provider = await PostgresProvider.connect(url, pool)
/** As many as a process uses at once, when every call takes long. */
const SESSIONS = 6

const runtime = new Runtime(provider, options)
runtime.registerOrchestration('count', async (_ctx, n) => n + 1)
process.on('message', async (order) => {
  if (order === 'start') {
    await runtime.start()
    return process.send({ started: true })
  }
  if (order === 'warm') {
    await Promise.all(Array.from({ length: SESSIONS }, () => provider.warm()))
    return process.send({ warm: true })
  }
  process.send({ counters: provider.stats().counters })
  if (order !== 'stop') return
  await runtime.shutdown(0)
  await provider.close()
  process.disconnect()
})
// Without its parent it has nothing to do.
process.once('disconnect', () => process.exit())
process.send({ ready: true })
