// The guide: its examples are parts of a program that runs, and the program does what the guide says.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { databaseUrl, freshSchema } from './support/world.mjs'

const file = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url))

test('every example of the guide is a part of the tour', () => {
  const blocks = [...readFileSync(file('docs/guide.md'), 'utf8').matchAll(/```js\n([\s\S]*?)```/g)].map(([, code]) => code.trim())
  const tour = readFileSync(file('examples/tour.mjs'), 'utf8')
  assert.ok(blocks.length >= 11)
  for (const block of blocks) assert.ok(tour.includes(block), block)
})

test('the tour runs to its end', () => {
  const env = { ...process.env, TOUR_DATABASE_URL: databaseUrl(), TOUR_SCHEMA: freshSchema() }
  const { status, stdout, stderr } = spawnSync(process.execPath, [file('examples/tour.mjs')], { encoding: 'utf8', env })
  assert.equal(status, 0, stderr)
  assert.deepEqual(stdout.trim().split('\n'), [
    'retry: Completed "worked at try 3"',
    'sideBySide: Completed {"failed":0,"sum":800}',
    'approval: Completed "approved by Ada"',
    'inbox: Completed ["one","two"]',
    'parent: Completed {"failed":0,"sum":600}',
    'cleanUp: Failed "canceled: changed my mind"',
    'poller: Completed {"rounds":3,"price":300}',
    'counter: Completed "3"',
    'generator: Completed 600',
    'sale: {"order":17,"key":"sale-17/1/2","track":"parcel 5"}',
  ])
})
