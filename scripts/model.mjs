// npm run model: explores every state of the lease protocol, and checks that each mutant of it is caught.
//
//   npm run model -- --json   the last line is { states, properties: [{ name, holds }], mutants: [{ name, caught }] }
//
// Exit code 0 only when every property holds and every mutant is caught.

import { run } from './lib/run.mjs'

const args = ['run', '--release', '--quiet', '--package', 'holdfast-model', '--', ...process.argv.slice(2)]
const { code } = await run('cargo', args)
process.exitCode = code
