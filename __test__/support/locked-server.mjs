// A server that asks for passwords, over TCP, with a role that may do nothing.

import net from 'node:net'

import pg from 'pg'

import { EmbeddedPostgres } from 'holdfast/dev'

/** Characters that must be percent-encoded in a URL: an error may show neither form. */
export const PASSWORD = 'ge/he@im'

async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address()
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** Starts it: `url` of the owner, `at(user, password, database)`, `sql(text)`. */
export async function lockedServer(t) {
  const port = await freePort()
  const server = await EmbeddedPostgres.start({ port })
  const admin = new pg.Client(server.url)
  t.after(async () => {
    await admin.end()
    await server.stop()
  })
  await admin.connect()
  await admin.query(`create role poor login password '${PASSWORD}'`)
  return {
    url: server.url,
    at: (user, password, database = 'postgres') => `postgres://${user}:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`,
    sql: async (text) => (await admin.query(text)).rows,
  }
}
