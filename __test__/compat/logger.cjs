// The program of tracing.test.mjs, as a CommonJS user writes it. Its configuration is JSON in its first argument:
// { url, schema, options, tracing, refused, again }. Says on stdout which calls of initTracing were refused, and how.
const path = require('node:path')
const { Client, PostgresProvider, Runtime, initTracing } = require('../../index.js')

const config = JSON.parse(process.argv[2])

function refusal(options) {
  try {
    initTracing(options)
    return null
  } catch (error) {
    return error.message
  }
}

async function main() {
  const said = {}
  if (config.refused) said.refused = refusal(config.refused)
  if (config.tracing) initTracing(config.tracing)
  const provider = await PostgresProvider.connectWithSchema(config.url, config.schema)
  const runtime = new Runtime(provider, config.options)
  runtime.registerActivity('speak', async (ctx) => {
    ctx.traceDebug('activity details')
    ctx.traceWarn('activity speaks')
  })
  runtime.registerOrchestration('talk', function* (ctx) {
    ctx.traceInfo('orchestration speaks')
    yield ctx.scheduleActivity('speak')
    yield ctx.scheduleActivity('speak')
  })
  await runtime.start()
  if (config.again) said.again = refusal({ logFile: path.join(require('node:os').tmpdir(), 'holdfast-never.log') })
  const client = new Client(provider)
  await client.startOrchestration('logged', 'talk')
  await client.waitForOrchestration('logged')
  await runtime.shutdown()
  await provider.close()
  process.stdout.write(JSON.stringify(said))
}

main()
