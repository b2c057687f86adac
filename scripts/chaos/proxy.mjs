// A TCP proxy between the processes and the server, which can do what a network does.
//
//   pass       forwards
//   cut        refuses new connections and has closed the old ones
//   slow       forwards each piece later
//   slowReplies  forwards later what the server says
//   blackhole  accepts, and forwards nothing in either direction
// `reset()` tears down every connection once and goes on forwarding.

import net from 'node:net'

export async function startProxy(target) {
  let mode = 'pass'
  let delayMs = 0
  const links = new Set()

  function forward(from, to, isReply) {
    from.on('data', (chunk) => {
      if (mode === 'blackhole') return
      const later = mode === 'slow' || (mode === 'slowReplies' && isReply)
      if (!later) return void (to.write(chunk) || (from.pause(), to.once('drain', () => from.resume())))
      setTimeout(() => to.writable && to.write(chunk), delayMs)
    })
    from.on('end', () => to.end())
  }

  function link(client) {
    if (mode === 'cut') return client.destroy()
    const server = net.connect(target)
    const pair = { client, server }
    links.add(pair)
    for (const socket of [client, server]) {
      socket.setNoDelay(true)
      socket.on('error', () => {})
      socket.on('close', () => {
        links.delete(pair)
        client.destroy()
        server.destroy()
      })
    }
    forward(client, server, false)
    forward(server, client, true)
  }

  const listener = net.createServer(link)
  await new Promise((resolve, reject) => listener.once('error', reject).listen(0, '127.0.0.1', resolve))

  function reset() {
    for (const { client, server } of links) {
      client.resetAndDestroy()
      // A socket of the file system knows no reset.
      if (target.path === undefined) server.resetAndDestroy()
      else server.destroy()
    }
  }

  return {
    port: listener.address().port,
    reset,
    set(next, milliseconds = 0) {
      // What the hole swallowed is gone: connections that go on after it would be out of step.
      if (next === 'cut' || mode === 'blackhole') reset()
      mode = next
      delayMs = milliseconds
    },
    async stop() {
      for (const { client } of links) client.destroy()
      await new Promise((resolve) => listener.close(resolve))
    },
  }
}
