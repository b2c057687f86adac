// Tokens in the place of passwords: when the next one is fetched, and what is refused. The pool's part is tested on a server.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { fakeProvider, holdfast } from '../support/app.mjs'

const { PostgresProvider } = holdfast
const { nextRenewalMs } = createRequire(import.meta.url)('../../dist/cjs/entra.js')

test('a token is renewed five minutes before it ends, or sooner by the interval, and never in a spin', () => {
  const minute = 60_000
  const next = (endsIn, every = 20 * minute) => nextRenewalMs({ token: 't', ...(endsIn === undefined ? {} : { expiresOnTimestamp: 1000 + endsIn }) }, every, 1000)
  assert.equal(next(undefined), 20 * minute)
  assert.equal(next(60 * minute), 20 * minute)
  assert.equal(next(15 * minute), 10 * minute)
  assert.equal(next(5 * minute), 30_000)
  assert.equal(next(-minute), 30_000)
  assert.equal(next(-minute, 2000), 2000, 'who asks for more gets it')
  assert.equal(next(undefined, 2 ** 40), 2 ** 31 - 1)
})

test('the first token is in the address, TLS is required, names are encoded', async () => {
  const { log } = await fakeProvider()
  const audiences = []
  const getToken = async (audience) => (audiences.push(audience), { token: 'a/b@c', expiresOnTimestamp: Date.now() + 3_600_000 })
  const provider = await PostgresProvider.connectWithSchemaAndEntra('db.example', 5432, 'main', 'app@example.org', 'orders', { getToken, maxConnections: 3 })
  const [, url, schema, options] = log.calls.at(-1)
  assert.equal(url, 'postgresql://app%40example.org:a%2Fb%40c@db.example:5432/main?sslmode=require')
  assert.deepEqual([schema, options.maxClients], ['orders', 3])
  assert.deepEqual(audiences, ['https://ossrdbms-aad.database.windows.net/.default'])
  await provider.close()
})

test('without a token nothing is connected', async () => {
  const connect = (options) => PostgresProvider.connectWithEntra('h', 5432, 'd', 'u', options)
  const coded = (code, text) => (error) => error.code === code && text.test(error.message)
  await assert.rejects(connect(), coded('ENTRA_UNSUPPORTED', /^Failed to connect with Entra: options\.getToken is missing\. Install @azure\/identity/))
  const failing = async () => {
    throw new Error('no such tenant')
  }
  await assert.rejects(connect({ getToken: failing }), coded('TOKEN_FAILED', /^Failed to connect with Entra: no token: no such tenant/))
  await assert.rejects(connect({ getToken: async () => null }), coded('TOKEN_FAILED', /no token: getToken gave null/))
  await assert.rejects(connect({ getToken: () => 't', token: 5 }), coded('INVALID_ARGUMENT', /token/))
  await assert.rejects(connect({ getToken: () => 't', refreshIntervalMs: 5 }), coded('INVALID_ARGUMENT', /refreshIntervalMs must be a whole number of at least 1000/))
})
