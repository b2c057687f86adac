// The demo's pipeline: read -> hash and compress -> index, an orchestration per file. The steps only know what they are
// given; what makes them safe to repeat is that the index is written under the step's idempotency key.
import { look, pack, shownName } from './files.mjs'
import { addFile, noteAttempt } from './tables.mjs'

/** Registers the pipeline. `db` is a pool of connections; `onStep` is told when a step has done its work. */
export function registerPipeline(runtime, db, onStep = async () => undefined) {
  const step = (name, body) => runtime.registerActivity(name, async (ctx, input) => {
    const worker = `pid ${process.pid}`
    await noteAttempt(db, { run: input.run, instance: ctx.instanceId, step: name, key: ctx.idempotencyKey, worker, delivery: ctx.delivery })
    const output = await body(ctx, input, worker)
    await onStep(name)
    return output
  })

  step('read', (ctx, { folder, name }) => look(folder, name))

  step('pack', (ctx, { folder, name }) => pack(folder, name, ctx.signal))

  step('index', async (ctx, { run, name, facts }, worker) => {
    await addFile(db, { ...facts, run, key: ctx.idempotencyKey, instance: ctx.instanceId, path: shownName(name), worker })
    return { kind: facts.kind }
  })

  runtime.registerOrchestration('index-file', async (ctx, file) => {
    const facts = await ctx.scheduleActivity('read', file)
    const isReadable = facts.kind === 'text' || facts.kind === 'binary'
    // A file can vanish between two steps: what the later step found is what counts.
    const found = isReadable ? { ...facts, ...(await ctx.scheduleActivity('pack', file)) } : facts
    return await ctx.scheduleActivity('index', { run: file.run, name: file.name, facts: found })
  })
}
