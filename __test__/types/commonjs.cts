// Compiled, never run: the same contract for CommonJS.
import holdfast = require('holdfast')

const runtime: holdfast.Runtime = new holdfast.Runtime(null as unknown as holdfast.PostgresProvider)
runtime.registerActivity('a', (ctx, input: number) => input + ctx.attempt)
export = runtime
