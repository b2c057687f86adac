/**
 * Mailboxes of one execution: messages nobody has read and waits nobody has answered, per name, both in order.
 *
 * The engine keeps the same books from history; the rule is one: a message goes to the oldest open wait of its name, a
 * wait takes the oldest unread message of its name.
 */

/** A first-in-first-out list whose `shift` costs the same at any length. */
class Fifo<T> {
  #items: T[] = []
  #head = 0

  get isEmpty(): boolean {
    return this.#head === this.#items.length
  }

  push(item: T): void {
    this.#items.push(item)
  }

  shift(): T | undefined {
    if (this.isEmpty) return undefined
    const item = this.#items[this.#head++]
    // Copying when half is used up keeps the cost per item constant.
    if (this.#head > 32 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  remove(item: T): void {
    const at = this.#items.indexOf(item, this.#head)
    if (at >= 0) this.#items.splice(at, 1)
  }
}

/** Messages and waits of one kind (one-shot events, or queues). `W` is a wait. */
export class Mailbox<W> {
  // Made when they are needed: most executions read no messages.
  #unread: Map<string, Fifo<{ readonly value: unknown }>> | undefined
  #waits: Map<string, Fifo<W>> | undefined

  /** A message arrived: the wait that it answers, or undefined when it was put aside. */
  deliver(name: string, value: unknown): W | undefined {
    const wait = this.#waits?.get(name)?.shift()
    if (wait === undefined) listOf((this.#unread ??= new Map()), name).push({ value })
    return wait
  }

  /** The oldest unread message, taken out. */
  take(name: string): { readonly value: unknown } | undefined {
    return this.#unread?.get(name)?.shift()
  }

  /** A wait that found no message. */
  wait(name: string, wait: W): void {
    listOf((this.#waits ??= new Map()), name).push(wait)
  }

  /** A wait that is no longer wanted. */
  forget(name: string, wait: W): void {
    this.#waits?.get(name)?.remove(wait)
  }
}

function listOf<T>(lists: Map<string, Fifo<T>>, name: string): Fifo<T> {
  let list = lists.get(name)
  if (list === undefined) {
    list = new Fifo<T>()
    lists.set(name, list)
  }
  return list
}
