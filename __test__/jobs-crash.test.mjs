// Workers that die with background jobs in their hands: no job is lost, none is recorded twice, and a job that kills its
// process harms no other.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'

import { ActivityFailedError, Client, PostgresProvider } from '../index.mjs'
import { FAST, Worker, databaseUrl, freshSchema } from './support/world.mjs'

async function jobsWorld(t) {
  const [url, schema] = [databaseUrl(), freshSchema()]
  const provider = await PostgresProvider.connectWithSchema(url, schema)
  t.after(() => provider.close())
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-jobs-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const ledger = join(folder, 'ledger')
  return { client: new Client(provider), config: { url, schema, ledger }, effects: () => readFileSync(ledger, 'utf8').trim().split('\n') }
}

describe('workers with jobs', { concurrency: 2 }, () => {
  test('that are killed one after the other lose none: each effect at least once, each result once', async (t) => {
    const { client, config, effects } = await jobsWorld(t)
    const items = Array.from({ length: 200 }, (_, n) => ({ activity: 'effect', input: `job-${n}`, id: `job-${n}`, retention: 'keep' }))
    const handles = await client.enqueueActivities(items)
    const options = { ...FAST, workerConcurrency: 16, retryBackoffBaseMs: 10, maxAttempts: 50 }
    const results = Promise.all(handles.map((handle) => handle.result({ timeoutMs: 120_000 })))
    for (let kill = 0; kill < 3; kill++) {
      const worker = new Worker({ ...config, options, stepMs: 100 })
      await worker.ready()
      const before = (await client.listActivities({ status: 'Completed', limit: 1000 })).activities.length
      for (;;) {
        const done = (await client.listActivities({ status: 'Completed', limit: 1000 })).activities.length
        if (done >= before + 20) break
      }
      worker.kill()
      await worker.exited
    }
    const last = new Worker({ ...config, options, stepMs: 1 })
    assert.deepEqual(await results, items.map((item) => item.input))
    await last.stop()
    assert.equal(new Set(effects()).size, 200)
    assert.ok(effects().length < 200 + 3 * 16 + 1, 'only what ran at a kill ran twice')
    assert.deepEqual(await client.audit(), [])
    const { activities } = await client.listActivities({ limit: 1000 })
    assert.ok(activities.every((job) => job.status === 'Completed') && activities.length === 200)
  })

  test('of which one kills its process: it alone is poisoned, and can be deleted', async (t) => {
    const { client, config, effects } = await jobsWorld(t)
    const others = Array.from({ length: 63 }, (_, n) => ({ activity: 'effect', input: `job-${n}`, retention: 'keep' }))
    const handles = await client.enqueueActivities([...others, { activity: 'kill', id: 'killer' }])
    const killer = handles.pop()
    const options = { ...FAST, maxAttempts: 3, workerConcurrency: 64, retryBackoffBaseMs: 10 }
    let isOver = false
    const results = Promise.allSettled([...handles, killer].map((handle) => handle.result({ timeoutMs: 120_000 })))
    results.then(() => (isOver = true))
    let deaths = 0
    while (!isOver) {
      const worker = new Worker({ ...config, options, stepMs: 20 })
      const exit = await Promise.race([worker.exited, results.then(() => worker.stop())])
      if (exit.signal === 'SIGKILL') deaths += 1
    }
    const ends = await results
    const poisoned = ends.pop().reason
    assert.ok(poisoned instanceof ActivityFailedError)
    assert.equal(poisoned.code, 'POISONED')
    assert.match(poisoned.message, /^poison: activity /)
    assert.ok(ends.every((end, n) => end.status === 'fulfilled' && end.value === `job-${n}`))
    assert.equal(new Set(effects()).size, 63)
    assert.ok(deaths >= 3 && deaths <= 4, `the killer started at most maxAttempts + 1 times, not ${deaths}`)
    const dead = (await client.listActivities({ status: 'Poisoned' })).activities
    assert.deepEqual(dead.map((job) => [job.id, job.error.code]), [['killer', 'POISONED']])
    assert.deepEqual(await client.audit(), [])
    await client.deleteActivity('killer')
    assert.equal((await killer.status()).status, 'NotFound')
  })
})
