// The client of a chaos run: starts workflows and sends their messages through the same bad network, and remembers what it
// was told. A call that failed is made again: starts are idempotent by their id, messages by their key.

import { setTimeout as delay } from 'node:timers/promises'

import { KINDS, PROGRAMS } from './programs.mjs'
import { pick } from './faults.mjs'

/** Repeats a call until it succeeds; undefined when the run is over before. */
async function insist(act, isOver) {
  for (;;) {
    try {
      return await act()
    } catch (error) {
      if (error.code === undefined) throw error
      if (isOver()) return undefined
      await delay(200)
    }
  }
}

/** Starts workflows until `until`; gives `[{ id, kind, n }]` of those that were accepted with all their messages. */
export async function load(client, random, until, width) {
  const accepted = []
  let next = 0
  // Calls that are under way at the end get their time.
  const isOver = () => Date.now() > until + 30_000

  async function one() {
    const n = next++
    const kind = pick(random, KINDS)
    const id = `chaos-${n}`
    const ms = Math.floor(random() * 120)
    const started = await insist(() => client.startOrchestration(id, kind, { n, ms }), isOver)
    if (started === undefined) return
    const flow = { id, kind, n, complete: true }
    accepted.push(flow)
    for (const [index, { send, name, data }] of PROGRAMS[kind].messages().entries()) {
      const key = `${id}/${index}`
      const sent = await insist(() => client[send](id, name, data, { dedupKey: key }), isOver)
      if (sent === undefined) flow.complete = false
    }
  }

  await Promise.all(Array.from({ length: width }, async () => {
    while (Date.now() < until) {
      await one()
      await delay(random() * 60)
    }
  }))
  return accepted
}
