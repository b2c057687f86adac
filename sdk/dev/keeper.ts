// Holds one membership for as long as it is wanted. When the watchdog is killed under us, the connection closes:
// then a new watchdog takes the running server over, so that it does not outlive its users.
// Holds no process alive.
import { joinServer, type Membership, type ServerPlan } from './server.js'

/** The hold on a server. */
export type Keeper = {
  /** From here on the hold does not keep the process alive. */
  settle(): void
  /** Lets go and waits for the end of the server when nobody else uses it. */
  stop(): Promise<void>
  /** Lets go without waiting for the server. */
  release(): Promise<void>
}

/** How often in a row a lost watchdog is replaced. */
const REPLACEMENTS = 3

/** Starts to hold a membership. */
export function keepMembership(plan: ServerPlan, first: Membership): Keeper {
  let connection = first.connection
  let settled = false
  let stopped: Promise<void> | undefined
  let replaced = 0
  let pending: Promise<void> = Promise.resolve()

  const watch = (): void => {
    if (settled) connection.unref()
    connection.once('close', () => {
      if (stopped !== undefined || replaced >= REPLACEMENTS) return
      replaced += 1
      pending = joinServer(plan).then((member) => {
        connection = member.connection
        if (stopped === undefined) watch()
      }, () => undefined) // the folder is gone or taken: the next query says so better than we could
    })
    connection.resume()
  }
  const stop = async (): Promise<void> => {
    await pending
    if (connection.destroyed) return
    connection.ref()
    const closed = new Promise<void>((resolve) => connection.once('close', () => resolve()))
    connection.write('stop\n')
    await closed
  }
  watch()
  return {
    settle() {
      settled = true
      connection.unref()
    },
    stop: () => (stopped ??= stop()),
    release: () => (stopped ??= pending.then(() => void connection.destroy())),
  }
}
