/**
 * The commands of one execution that nothing has answered yet, by their number.
 *
 * Most code waits for one thing at a time, so the first is kept apart: a map that is emptied by each answer would make its
 * table anew each time.
 */
import type { CommandTask } from './task.js'

export class OpenTasks {
  #one: CommandTask | undefined
  #others: Map<number, CommandTask> | undefined

  get size(): number {
    return (this.#one === undefined ? 0 : 1) + (this.#others?.size ?? 0)
  }

  get(seq: number): CommandTask | undefined {
    return this.#one?.seq === seq ? this.#one : this.#others?.get(seq)
  }

  /** Adds a task that has its number. */
  add(task: CommandTask): void {
    if (this.#one === undefined) this.#one = task
    else (this.#others ??= new Map()).set(task.seq, task)
  }

  /** Whether it was there. */
  delete(seq: number): boolean {
    if (this.#one?.seq !== seq) return this.#others?.delete(seq) === true
    this.#one = undefined
    return true
  }

  /** All, in the order of their numbers. */
  values(): CommandTask[] {
    const all = [...(this.#others?.values() ?? [])]
    if (this.#one !== undefined) all.push(this.#one)
    return all.sort((a, b) => a.seq - b.seq)
  }

  clear(): void {
    this.#one = undefined
    this.#others = undefined
  }
}
