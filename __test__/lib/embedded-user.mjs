// A process that uses the embedded server as its arguments say, for tests that kill it. It writes one line of JSON
// when it has the server (or its error), then lives until it is killed, or ends by itself with `"leave": true`.
import { EmbeddedPostgres } from '../../scripts/lib/embedded.mjs'

const { leave = false, ...options } = JSON.parse(process.argv[2] ?? '{}')
try {
  const server = await EmbeddedPostgres.start(options)
  process.stdout.write(`${JSON.stringify({ url: server.url, version: server.version, dataDir: server.dataDir })}\n`)
  if (!leave) setInterval(() => undefined, 60_000)
} catch (error) {
  process.stdout.write(`${JSON.stringify({ error: error.message, code: error.code })}\n`)
}
