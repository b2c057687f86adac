// Starting: many at once, later, twice, and while the same id is being deleted.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'

import { InstanceExistsError } from '../../index.mjs'
import { liveApp, liveWorld, outputOf } from '../support/live.mjs'

describe('starting', { concurrency: 4 }, () => {
  test('thousands go in few transactions, each is told whether it was made, and they run', async (t) => {
    const app = await liveWorld(t)
    await app.client.startOrchestration('job-7', 'main', 'other')
    const { commitBatches: before } = app.provider.stats().counters
    const items = Array.from({ length: 5000 }, (_, n) => ({ orchestration: 'main', id: `job-${n}`, input: n, tag: n % 2 ? 'odd' : 'even' }))
    const started = await app.client.startMany([...items, items[0]])
    assert.equal(started.length, 5001)
    assert.deepEqual(started[0], { id: 'job-0', created: true, same: true })
    assert.deepEqual(started[7], { id: 'job-7', created: false, same: false })
    assert.deepEqual(started[5000], { id: 'job-0', created: false, same: true })
    assert.equal(started.filter(({ created }) => created).length, 4999)
    const { commitBatches: after } = app.provider.stats().counters
    assert.ok(after - before <= 8, `${after - before} transactions`)
    assert.deepEqual((await app.client.startMany(items.slice(0, 10))).map(({ created }) => created), Array(10).fill(false))
    await app.start({ orchestrations: { main: async (_ctx, n) => n } })
    for (const n of [0, 1, 2]) assert.equal(outputOf(await app.end(`job-${n}`)), n)
    const odd = await app.client.listInstances({ tag: 'odd', limit: 1000 })
    assert.equal(odd.instances.length, 1000)
    assert.ok(odd.instances.every(({ tag }) => tag === 'odd'))
    assert.equal((await app.client.getInstanceInfo('job-2')).tag, 'even')
  })

  test('a bad item of many starts nothing, ids are made where none is given', async (t) => {
    const app = await liveWorld(t)
    const main = { orchestration: 'main' }
    await assert.rejects(app.client.startMany([main, { orchestration: 'main', input: 1n }]), { code: 'INVALID_PAYLOAD' })
    await assert.rejects(app.client.startMany([main, { orchestration: 'main', ip: 1 }]), /item 1 has no 'ip'/)
    await assert.rejects(app.client.startMany([main, { orchestration: 'main', delayMs: 1, startAt: 1 }]), /not both/)
    await assert.rejects(app.client.startMany({}), /array/)
    assert.deepEqual(await app.client.listAllInstances(), [])
    assert.deepEqual(await app.client.startMany([]), [])
    const [a, b] = await app.client.startMany([main, main])
    assert.ok(a.created && b.created && a.id !== b.id)
  })

  test('the same start twice is one, another name or input is refused and disturbs nothing', async (t) => {
    const app = await liveApp(t, { main: async (ctx, n) => [n, await ctx.waitForEvent('go')], orchestrations: { other: async () => 'other' } })
    const handles = await Promise.all(Array.from({ length: 20 }, () => app.client.start('main', 1, { id: 'one' })))
    assert.equal(new Set(handles.map(({ id }) => id)).size, 1)
    for (const [name, input] of [['main', 2], ['other', 1]]) {
      await assert.rejects(app.client.start(name, input, { id: 'one' }), (error) => error instanceof InstanceExistsError && error.code === 'INSTANCE_EXISTS')
      assert.deepEqual(await app.client.startOrchestration('one', name, input), { created: false })
    }
    await app.client.raiseEvent('one', 'go', 'went')
    assert.deepEqual(await handles[0].result(), [1, 'went'])
    assert.equal((await app.kinds('one')).filter((kind) => kind === 'OrchestrationStarted').length, 1)
  })

  test('a start that races a deletion of the same id is made or told the truth', async (t) => {
    const app = await liveApp(t, { main: async (_ctx, n) => n })
    for (let round = 0; round < 60; round++) {
      await app.client.startOrchestration('one', 'main', 1)
      await app.end('one')
      const [deleted, ...starts] = await Promise.all([
        app.client.deleteInstance('one', true).then(({ instancesDeleted }) => instancesDeleted, () => 0),
        ...Array.from({ length: 4 }, () => app.client.start('main', 1, { id: 'one' }).then(() => 'fine', (error) => error)),
      ])
      // The id had this name and input before and after, so no start may hear of another.
      assert.deepEqual(starts, Array(4).fill('fine'), `round ${round}, ${deleted} deleted`)
    }
  })

  test('a delayed start waits, keeps what is sent to it, and can be cancelled at once', async (t) => {
    const app = await liveApp(t, { main: async (ctx) => [ctx.utcNow(), await ctx.waitForEvent('go')] })
    const asked = (await app.sql('select floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now'))[0].now
    const soon = await app.client.start('main', null, { id: 'soon', delayMs: 700 })
    await app.client.start('main', null, { id: 'at', startAt: new Date(asked + 700) })
    await app.client.start('main', null, { id: 'never', delayMs: 3_600_000 })
    for (const id of ['soon', 'at', 'never']) await app.client.raiseEvent(id, 'go', 'early')
    assert.equal((await app.client.getStatus('soon')).status, 'NotFound')
    const never = await app.client.explain('never')
    assert.equal(never.status, 'Pending')
    assert.match(never.summary, /^waits until 2/)
    for (const id of ['soon', 'at']) {
      const [startedAt, event] = outputOf(await app.end(id))
      assert.equal(event, 'early')
      assert.ok(startedAt >= asked + 699, `${startedAt - asked} ms after it was asked for`)
    }
    assert.deepEqual(await soon.result().then(([, event]) => event), 'early')
    await delay(50)
    assert.equal((await app.client.getStatus('never')).status, 'NotFound')
    assert.deepEqual(await app.client.cancelInstance('never', 'changed my mind'), { accepted: true })
    assert.equal((await app.end('never')).error, 'canceled: changed my mind')
    await assert.rejects(app.client.start('main', null, { delayMs: -1 }), { code: 'INVALID_ARGUMENT' })
    await assert.rejects(app.client.start('main', null, { startAt: Number.NaN }), { code: 'INVALID_ARGUMENT' })
    await assert.rejects(app.client.start('main', null, { dleayMs: 1 }), /dleayMs/)
  })
})
