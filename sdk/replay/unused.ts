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
  readonly #tasks = new Set<TaskNode>()

  add(task: TaskNode): void {
    if (this.#tasks.size < MAX_REMEMBERED) this.#tasks.add(task)
  }

  delete(task: TaskNode): void {
    this.#tasks.delete(task)
  }

  clear(): void {
    this.#tasks.clear()
  }

  /** What to tell about them, if there are any. */
  text(): string | undefined {
    if (this.#tasks.size === 0) return undefined
    const titles = [...this.#tasks].slice(0, MAX_NAMED).map((task) => task.title)
    const more = this.#tasks.size > MAX_NAMED ? ` and ${this.#tasks.size - MAX_NAMED} more` : ''
    return `ended with steps that were made and never awaited or yielded, so they did not happen: ${titles.join(', ')}${more}`
  }
}
