// A worker process of a chaos run: runs the programs, and marks each effect in the ledger, which the engine does not know.
// Configuration: JSON in HOLDFAST_CHAOS: { url, pool, options, ledger }. Takes `{ block: ms }` and `stop` as messages.

import { setTimeout as delay } from 'node:timers/promises'

import pg from 'pg'

import { PostgresProvider, Runtime } from '../../index.mjs'
import { registerPrograms } from './programs.mjs'

const { url, pool, options, ledger } = JSON.parse(process.env.HOLDFAST_CHAOS)
const marks = new pg.Pool({ connectionString: ledger, max: 4 })
marks.on('error', () => {})

async function effect(ctx, { n, ms }) {
  const { rows } = await marks.query(
    'insert into effect (key, instance, pid, delivery) values ($1, $2, $3, $4) returning id',
    [ctx.idempotencyKey, ctx.instanceId, process.pid, ctx.delivery])
  await delay(ms)
  await marks.query('update effect set ended_at = clock_timestamp() where id = $1', [rows[0].id])
  return n + 1
}

/** The database may be away just now: that is part of the run. */
async function start() {
  for (;;) {
    let provider
    try {
      provider = await PostgresProvider.connect(url, pool)
      const runtime = new Runtime(provider, options)
      registerPrograms(runtime, effect)
      await runtime.start()
      return { provider, runtime }
    } catch (error) {
      await provider?.close().catch(() => {})
      if (!error.retryable) console.error(`worker ${process.pid}: ${error.code ?? ''} ${error.message}`)
      await delay(300)
    }
  }
}

// Whoever started it is gone.
let isTold = false
process.on('disconnect', () => isTold || process.exit(1))

const { provider, runtime } = await start()
process.on('message', async (order) => {
  if (order.block !== undefined) {
    const until = performance.now() + order.block
    while (performance.now() < until);
    return
  }
  isTold = true
  await runtime.shutdown(2000)
  await provider.close()
  await marks.end()
  process.disconnect()
})
process.send('ready')
