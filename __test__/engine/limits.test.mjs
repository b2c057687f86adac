// The cases of `npm run limits` with small counts: what they assert must hold at any size.
import { test } from 'node:test'

import { CASES } from '../../scripts/limits/cases.mjs'
import { openWorld } from '../../scripts/limits/world.mjs'
import { databaseUrl, freshSchema } from '../support/world.mjs'

for (const [name, run] of Object.entries(CASES)) {
  test(`${name}, and the instance beside it still runs`, async (t) => {
    const world = await openWorld(databaseUrl(), freshSchema())
    t.after(() => world.close())
    await run(world, 0.01)
    await world.stillRuns()
  })
}
