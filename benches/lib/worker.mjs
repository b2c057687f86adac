// A worker process of the workload `contention`: says when it is ready, works when told to, ends when told to.

const [, , name, url] = process.argv
const { open } = await import(`../systems/${name}.mjs`)
const hooks = { step: (value) => value, end: (value) => value, job() {} }
const system = await open({ url, hooks, workload: 'contention', child: true })
process.on('message', async (order) => {
  if (order === 'go') return await system.startWorker()
  await Promise.race([system.close(), new Promise((resolve) => setTimeout(resolve, 3000))]).catch(() => {})
  process.exit()
})
process.send('ready')
