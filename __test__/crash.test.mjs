// A worker dies at every named point; a second one finishes; nothing is lost and no recorded step is doubled.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'

import { Client, PostgresProvider } from '../index.mjs'
import { databaseUrl, FAST, freshSchema, Worker } from './support/world.mjs'

const POINTS = [
  'node.register.before:1',
  'node.register.after:1',
  'heartbeat.before:2',
  'heartbeat.after:2',
  'renew.before:2',
  'renew.after:2',
  'claim.turns.before:2',
  'claim.turns.after:2',
  'claim.activities.before:2',
  'claim.activities.after:2',
  'turn.load.before:2',
  'turn.load.after:2',
  'turn.activate.before:2',
  'turn.activate.after:2',
  'crossing.next.before:2',
  'crossing.next.after:2',
  'crossing.complete.before:2',
  'crossing.complete.after:2',
  'turn.match.before:3',
  'turn.match.after:3',
  'turn.submit.before:3',
  'turn.submit.after:3',
  'turn.settled.before:3',
  'turn.settled.after:3',
  'activity.start.before:2',
  'activity.start.after:2',
  'activity.result.before:3',
  'activity.result.after:3',
  'activity.submit.before:3',
  'activity.submit.after:3',
  'activity.settled.before:3',
  'activity.settled.after:3',
  'commit.batch.before:3',
  'commit.batch.after:3',
  'commit.outcome.before:3',
  'commit.outcome.after:3',
  'release.before:1',
  'release.after:1',
  'goodbye.before:1',
  'goodbye.after:1',
]

/** Every schedule has exactly one completion, and ids have no gap. */
function audit(history) {
  history.forEach((event, index) => assert.equal(event.eventId, index + 1, 'history is gapless'))
  const scheduled = history.filter((event) => event.kind === 'ActivityScheduled').map((event) => event.eventId)
  const completed = history.filter((event) => event.kind === 'ActivityCompleted').map((event) => event.sourceEventId)
  assert.deepEqual(completed.toSorted((a, b) => a - b), scheduled, 'each step is recorded once')
  assert.equal(history.filter((event) => event.kind === 'OrchestrationCompleted').length, 1, 'one end')
}

describe('a worker that dies', { concurrency: 4 }, () => {
  for (const point of POINTS) {
    test(`at ${point} loses nothing and doubles no recorded step`, async () => {
      const url = databaseUrl()
      const schema = freshSchema()
      const provider = await PostgresProvider.connectWithSchema(url, schema)
      const client = new Client(provider)
      const ids = ['a', 'b', 'c', 'd']
      for (const [index, id] of ids.entries()) await client.startOrchestration(id, 'three', index)
      await client.startOrchestration('hanging', 'hanging')

      const config = { url, schema, options: FAST, stepMs: 150, hang: true }
      const first = new Worker(config, { HOLDFAST_CRASH_AT: point })
      const done = Promise.all(ids.map((id) => client.waitForOrchestration(id, 60_000)))
      await Promise.race([first.exited, done])
      const death = await first.stop()
      assert.equal(death.signal, 'SIGABRT', `the point was reached: ${JSON.stringify(death)}`)

      const second = new Worker({ ...config, hang: false, stepMs: 0 })
      await second.ready()
      const ends = await Promise.all([...ids, 'hanging'].map((id) => client.waitForOrchestration(id, 60_000)))
      assert.deepEqual(ends.map((end) => [end.status, end.output]), [
        ['Completed', 3],
        ['Completed', 4],
        ['Completed', 5],
        ['Completed', 6],
        ['Completed', 'done'],
      ])
      assert.deepEqual(await second.stop(), { code: 0, signal: null, errors: '' })
      for (const id of [...ids, 'hanging']) audit(await client.readExecutionHistory(id, 1))
      assert.deepEqual(await client.audit(), [])
      await provider.close()
    })
  }
})

describe('an activity that kills its process', () => {
  let provider
  const schema = freshSchema()
  before(async () => {
    provider = await PostgresProvider.connectWithSchema(databaseUrl(), schema)
  })
  after(() => provider.close())

  test('is poisoned alone: its 63 neighbours complete', async () => {
    const client = new Client(provider)
    const ids = Array.from({ length: 63 }, (_, index) => `innocent-${index}`)
    for (const id of ids) await client.startOrchestration(id, 'three', 0)
    await client.startOrchestration('killer', 'killer')
    const options = { ...FAST, maxAttempts: 3, orchestrationConcurrency: 64, workerConcurrency: 64, retryBackoffBaseMs: 10 }
    const config = { url: databaseUrl(), schema, options, stepMs: 20 }

    let ended = false
    const ends = Promise.all([...ids, 'killer'].map((id) => client.waitForOrchestration(id, 120_000)))
    ends.finally(() => (ended = true)).catch(() => {})
    let deaths = 0
    while (!ended) {
      const worker = new Worker(config)
      const exit = await Promise.race([worker.exited, ends.then(() => worker.stop())])
      if (exit.signal === 'SIGKILL') deaths += 1
    }
    const results = await ends
    const killer = results.pop()
    assert.ok(results.every((end) => end.status === 'Completed' && end.output === 3))
    assert.equal(killer.status, 'Failed')
    assert.match(killer.error, /poison/)
    assert.deepEqual(await client.audit(), [])
    assert.ok(deaths >= 3 && deaths <= 4, `the killer started at most maxAttempts + 1 times, not ${deaths}`)
  })
})
