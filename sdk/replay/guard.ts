/**
 * Rejections that nobody handled in orchestration code must not end the process: a cancellation rejects every open task,
 * also those whose promise a branch of the code has not awaited yet, and the next delivery would end the next process.
 *
 * While a runtime is started, such a rejection becomes a warning; a later `await` of the promise still gets the error. Every
 * other rejection is treated as Node treats it without this listener.
 */
import { AsyncLocalStorage } from 'node:async_hooks'

/** What the guard knows of the code that is running. */
export interface GuardedCode {
  readonly start: { readonly name: string; readonly instance: string }
}

const running = new AsyncLocalStorage<GuardedCode>()

/** Runs orchestration code so that its rejections are known as such, also after an await. */
export function guarded<T>(code: GuardedCode, act: () => T): T {
  return running.run(code, act)
}

let holders = 0

/** Puts the guard up; the returned function takes it down again. */
export function holdGuard(): () => void {
  if (holders === 0) process.on('unhandledRejection', onUnhandled)
  holders += 1
  let isHeld = true
  return () => {
    if (!isHeld) return
    isHeld = false
    holders -= 1
    if (holders === 0) process.off('unhandledRejection', onUnhandled)
  }
}

function onUnhandled(reason: unknown): void {
  const code = running.getStore()
  if (code === undefined) {
    // A listener switches Node's default off, which is to throw; other listeners or another mode decide for themselves.
    if (process.listenerCount('unhandledRejection') === 1 && mode() === 'throw') throw reason
    return
  }
  const { name, instance } = code.start
  const text = reason instanceof Error ? `${reason.name}: ${reason.message}` : String(reason)
  process.emitWarning(`orchestration '${name}' (instance '${instance}') left a rejected promise unhandled: ${text}`, {
    code: 'HOLDFAST_UNHANDLED_REJECTION',
  })
}

/** What Node was told to do with unhandled rejections. */
function mode(): string {
  const flags = [...process.execArgv, ...(process.env['NODE_OPTIONS']?.split(/\s+/) ?? [])]
  const prefix = '--unhandled-rejections'
  const at = flags.findIndex((flag) => flag === prefix || flag.startsWith(`${prefix}=`))
  if (at < 0) return 'throw'
  return (flags[at] === prefix ? flags[at + 1] : flags[at]?.slice(prefix.length + 1)) ?? 'throw'
}
