// The ways to make a claim take longer than a lease. Each gives `{ url, pool, options, prepare(), begin(), end() }`, and
// `arrivalMs` where not all instances are due from the beginning.
//
//   lock       another session takes the turn queue's table for itself, again and again
//   proxy      every reply of the server comes later
//   statement  the claim itself takes longer: a trigger of the test database sleeps
//   lost       it takes longer than a claim is waited for, until shortly before that time: the first claim of each is lost

import { setTimeout as delay } from 'node:timers/promises'

import pg from 'pg'

import { startProxy } from '../chaos/proxy.mjs'

const CLAIM_MS = 6400

/** On the slow way, while the processes open their sessions. */
const WARM_REPLY_MS = 200

/** Above the limit of a claim, which is a minute. */
const LOST_MS = 62_000

/** The second claims begin after that limit; lost as well, they would take another minute. */
const LOST_FOR_MS = 58_000

/** A claim that takes rows sleeps once for each transaction, as long as `latency` says at that moment. */
const SLOW_CLAIMS = `
  create schema livelock;
  create table livelock.latency (ms int not null);
  insert into livelock.latency values (0);
  create function livelock.sleep() returns trigger language plpgsql as $$
  declare wanted int;
  begin
    if current_setting('livelock.slept', true) is distinct from txid_current()::text then
      perform set_config('livelock.slept', txid_current()::text, false);
      select ms into wanted from livelock.latency;
      perform pg_sleep(wanted / 1000.0);
    end if;
    return new;
  end $$;
  create trigger livelock_sleep before update on holdfast.turn_queue for each row
    when (new.deliveries > old.deliveries) execute function livelock.sleep()`

const none = async () => {}

export const VARIANTS = {
  lock: (url) => {
    let over = false
    let running
    const client = new pg.Client({ connectionString: url, application_name: 'livelock' })
    async function cycle() {
      await client.connect()
      while (!over) {
        await client.query('begin; lock table holdfast.turn_queue in access exclusive mode')
        await delay(CLAIM_MS)
        await client.query('commit')
        await delay(300)
      }
      await client.end()
    }
    return {
      claimMs: CLAIM_MS, url, pool: {}, options: {}, prepare: none,
      async begin() {
        running = cycle()
      },
      async end() {
        over = true
        await running
      },
    }
  },
  proxy: async (url) => {
    const proxy = await startProxy({ host: '127.0.0.1', port: Number(new URL(url).port) })
    const through = new URL(url)
    through.port = proxy.port
    return {
      claimMs: CLAIM_MS,
      url: through.href,
      // Everything is slow on this way, so everything is given the time: a heartbeat's limit is its interval.
      // As behind a pooler a statement is sent as its text: on a new session no reply is spent on its name.
      pool: {
        connectTimeoutMs: 60_000, queryTimeoutMs: 60_000, acquireTimeoutMs: 60_000, idleTimeoutMs: 600_000,
        pooled: true, directUrl: through.href,
      },
      // A claim's reply comes after its lease, and the first renewal after that: some delivery's back-off must outgrow a reply,
      // nothing else keeps the others away.
      options: { heartbeatIntervalMs: 15_000, staleAfterMs: 90_000, retryBackoffBaseMs: 7000, retryBackoffMaxMs: 60_000 },
      // Claim and renewal are two replies: eight times four instances in each 12.8 s, two and a half a second.
      arrivalMs: 150_000,
      // Where replies take their time, calls meet, and go over more than one session.
      prepare: async () => proxy.set('slowReplies', WARM_REPLY_MS),
      begin: async () => proxy.set('slowReplies', CLAIM_MS),
      end: () => proxy.stop(),
    }
  },
  // Eight claims of four at once, each 6.4 s: five instances a second. They come somewhat faster.
  statement: (url) => ({ ...sleeping(url, CLAIM_MS, none), arrivalMs: 80_000 }),
  lost: (url) => sleeping(url, LOST_MS, async (client) => {
    await delay(LOST_FOR_MS)
    await client.query('update livelock.latency set ms = 0')
  }),
}

function sleeping(url, ms, afterwards) {
  const client = new pg.Client({ connectionString: url, application_name: 'livelock' })
  let running
  return {
    claimMs: ms, url, pool: {}, options: {},
    async prepare() {
      await client.connect()
      await client.query(SLOW_CLAIMS)
    },
    async begin() {
      await client.query('update livelock.latency set ms = $1', [ms])
      running = afterwards(client)
    },
    async end() {
      await running
      await client.end()
    },
  }
}
