/**
 * Tasks that were made and not used yet. They are lazy: what was never awaited never happened, which is hardly what was
 * meant, so the end of the code names them.
 */
import type { TaskNode } from './task.js'

/** Tasks that are remembered; a loop that makes more of them forgets to await all in the same way. */
const MAX_REMEMBERED = 1000

/** Tasks that the text names. */
const MAX_NAMED = 5

export class Unused {
  /** The newest, apart: nearly every task is used before the next one is made. */
  #newest: TaskNode | undefined
  /** Those before it. */
  #older: Set<TaskNode> | undefined

  add(task: TaskNode): void {
    if (this.#newest !== undefined) {
      this.#older ??= new Set()
      if (this.#older.size >= MAX_REMEMBERED) return
      this.#older.add(this.#newest)
    }
    this.#newest = task
  }

  delete(task: TaskNode): void {
    if (this.#newest === task) this.#newest = undefined
    else this.#older?.delete(task)
  }

  clear(): void {
    this.#newest = undefined
    this.#older = undefined
  }

  /** What to tell about them, if there are any. */
  text(): string | undefined {
    const tasks = [...(this.#older ?? [])]
    if (this.#newest !== undefined) tasks.push(this.#newest)
    if (tasks.length === 0) return undefined
    const titles = tasks.slice(0, MAX_NAMED).map((task) => task.title)
    const more = tasks.length > MAX_NAMED ? ` and ${tasks.length - MAX_NAMED} more` : ''
    return `ended with steps that were made and never awaited or yielded, so they did not happen: ${titles.join(', ')}${more}`
  }
}
