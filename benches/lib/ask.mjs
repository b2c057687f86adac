// One statement from a process of its own: `node ask.mjs URL SQL`.

import { session } from './costs.mjs'

const [, , url, sql] = process.argv
const client = await session(url)
await client.query(sql)
await client.end()
