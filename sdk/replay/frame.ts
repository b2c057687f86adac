/**
 * One live execution: the user's generator or async function with everything it has asked for and not yet got.
 *
 * The frame applies facts one by one and collects commands. It never waits itself: a generator runs synchronously, an async
 * function runs in the microtasks that the driver lets drain between two facts. It never throws for an error of user code.
 */
import { encodeError, activityError, orchestrationError } from '../error-payload.js'
import { CancelledError, HoldfastError } from '../errors.js'
import { encode } from '../payload.js'
import { type Outcome, encodeCancel, encodeCommand, encodeReply, encodeStatus } from './encode.js'
import { trace } from '../trace.js'
import { guarded } from './guard.js'
import { Mailbox } from './mailbox.js'
import { SeededRandom } from './random.js'
import { type CommandTask, type TaskHost, ActivityCommandTask, TaskNode, isTask } from './task.js'
import type { ActivationStart, Fact } from './wire.js'

/** What runs in a frame: the registered function, already bound to its context. */
export type FrameBody = (frame: Frame) => unknown

/** Tasks that code started after a cancellation are refused at once; a loop that goes on regardless is left standing. */
const MAX_REFUSED = 1000

/** Unused tasks that a warning names. */
const MAX_TITLES = 5

/** Unused tasks that are remembered; more are forgotten in the same way as a rule. */
const MAX_UNUSED = 1000

/** Values of `utcNow`, `newGuid` and `random` that a generator may still yield. */
const MAX_HANDED_OUT = 256

export class Frame implements TaskHost {
  /** True for an async function: its code runs in microtasks. */
  isAsync = false
  /** True while the engine's facts are replayed and the code has run through here before. */
  isReplaying: boolean
  /** True between the first fact and the reply of an activation. */
  isActive = true
  /** Database time of the last fact. */
  now: number
  customStatus: string | null
  cancellation: CancelledError | undefined
  readonly random: SeededRandom
  applied = 0

  #isStirred = false
  #issued = 0
  #refused = 0
  #commands: string[] = []
  #outcome: Outcome = { type: 'waiting' }
  #generator: Iterator<unknown, unknown, unknown> | undefined
  #awaited: TaskNode | undefined
  #handedOut = new Set<unknown>()
  #open = new Map<number, CommandTask>()
  #unused = new Set<TaskNode>()
  #events = new Mailbox<CommandTask>()
  #queues = new Mailbox<CommandTask>()

  constructor(
    readonly id: number,
    readonly start: ActivationStart,
    readonly payloadLimit: number,
  ) {
    this.isReplaying = start.replaying
    this.now = start.atMs
    this.customStatus = start.customStatus ?? null
    this.random = new SeededRandom(start.seed)
    for (const { kind, name, data } of start.carried ?? []) this.#mailbox(kind).deliver(name, data)
  }

  /** True when no further fact can change anything. */
  get isEnded(): boolean {
    return this.#outcome.type !== 'waiting'
  }

  /** True when the engine is not expected to come back to this frame. */
  get isOver(): boolean {
    return this.isEnded || this.cancellation !== undefined
  }

  /** Runs the code up to its first wait. */
  begin(body: FrameBody): void {
    try {
      this.#run(guarded(this, () => body(this)))
    } catch (error) {
      this.#fail(error)
    }
  }

  #run(result: unknown): void {
    if (isIterator(result) && !isTask(result)) {
      this.#generator = result
      guarded(this, () => this.#resume(() => result.next()))
    } else if (isObject(result) && Symbol.asyncIterator in result) {
      const message = `orchestration '${this.start.name}' is an async generator; use function* with yield, or async function with await`
      this.#fail(new HoldfastError(message, { code: 'INVALID_ORCHESTRATION' }))
    } else if (isObject(result) && 'then' in result) {
      this.isAsync = true
      Promise.resolve(result).then(
        (value) => this.#complete(value),
        (error: unknown) => this.#fail(error),
      )
    } else {
      this.#complete(result)
    }
  }

  /** Applies one fact; a generator has run to its next wait when this returns, an async function has it before it. */
  apply(fact: Fact): void {
    if (fact.t === 'done' || fact.t === 'fail') {
      if (fact.seq >= this.#issued) {
        this.#end({ type: 'diverged' })
        return
      }
    }
    this.applied += 1
    this.now = fact.at
    this.#deliver(fact)
    if (this.#awaited?.isSettled === true) this.#proceed()
  }

  /** After the code has come to a stand: an async function that waits for nothing of ours waits for something foreign. */
  checkForeign(): void {
    if (this.isAsync && !this.isOver && this.#open.size === 0) this.#end({ type: 'foreign', message: this.#foreignText() })
  }

  /** The answer to the activation; until the next one the code must not run. */
  reply(): string {
    const text = encodeReply(this.id, this.applied, this.#commands, this.#outcome)
    this.#commands = []
    this.isActive = false
    return text
  }

  #deliver(fact: Fact): void {
    switch (fact.t) {
      case 'done':
        this.#take(fact.seq)?.succeed(fact.value)
        return
      case 'fail': {
        const task = this.#take(fact.seq)
        if (task === undefined) return
        const { spec } = task
        task.fail(spec.type === 'child' ? orchestrationError(spec.name, fact.error) : activityError('name' in spec ? spec.name : spec.type, fact.error))
        return
      }
      case 'event':
      case 'queue': {
        const wait = this.#mailbox(fact.t).deliver(fact.name, fact.data)
        if (wait === undefined) return
        this.#open.delete(wait.seq)
        wait.succeed(fact.data)
        return
      }
      case 'cancel':
        this.#cancel(fact.reason)
    }
  }

  #take(seq: number): CommandTask | undefined {
    const task = this.#open.get(seq)
    this.#open.delete(seq)
    return task
  }

  #mailbox(kind: 'event' | 'queue'): Mailbox<CommandTask> {
    return kind === 'event' ? this.#events : this.#queues
  }

  #cancel(reason: string): void {
    this.cancellation = new CancelledError(`canceled: ${reason}`, { code: 'CANCELLED' })
    // Replay must show the same text as the live run, so the stack holds no place of this package.
    this.cancellation.stack = `CancelledError: canceled: ${reason}`
    const open = [...this.#open.values()]
    this.#open.clear()
    for (const task of open) task.fail(this.cancellation)
    if (this.#awaited !== undefined && !this.#awaited.isSettled) this.#awaited.fail(this.cancellation)
  }

  // What tasks ask for.

  stir(): void {
    this.#isStirred = true
  }

  /** True when code may run since the last call: a fact that settles no promise needs no barrier. */
  takeStir(): boolean {
    const isStirred = this.#isStirred
    this.#isStirred = false
    return isStirred
  }

  made(task: TaskNode): void {
    if (this.#unused.size < MAX_UNUSED) this.#unused.add(task)
  }

  used(task: TaskNode): void {
    this.#unused.delete(task)
  }

  issue(task: CommandTask): void {
    if (!this.#mayAct()) return
    if (this.cancellation !== undefined) {
      this.#refused += 1
      if (this.#refused <= MAX_REFUSED) task.fail(this.cancellation)
      return
    }
    const { spec } = task
    task.seq = this.#issued++
    this.#commands.push(encodeCommand(spec, this.applied, task instanceof ActivityCommandTask ? task.tag : undefined))
    if (spec.type === 'detached') {
      task.succeed(null)
      return
    }
    if (spec.type === 'event' || spec.type === 'queue') {
      const mailbox = this.#mailbox(spec.type)
      const message = mailbox.take(spec.name)
      if (message !== undefined) {
        task.succeed(message.value)
        return
      }
      mailbox.wait(spec.name, task)
    }
    this.#open.set(task.seq, task)
  }

  withdraw(task: CommandTask): void {
    if (!this.#open.delete(task.seq)) return
    const { spec } = task
    if (spec.type === 'event' || spec.type === 'queue') this.#mailbox(spec.type).forget(spec.name, task)
    if (this.cancellation !== undefined) return
    this.#issued += 1
    this.#commands.push(encodeCancel(task.seq, this.applied))
  }

  setStatus(status: string | null): void {
    if (!this.#mayAct() || this.cancellation !== undefined) return
    this.customStatus = status
    this.#issued += 1
    this.#commands.push(encodeStatus(status, this.applied))
  }

  continueAsNew(input: string, version: string | undefined): void {
    if (this.#mayAct() && this.cancellation === undefined) this.#end({ type: 'continued', input, version })
  }

  /** Remembers a value of `utcNow`, `newGuid` or `random`, so that a generator may yield it. */
  handOut<T extends number | string>(value: T): T {
    if (this.#handedOut.size >= MAX_HANDED_OUT) this.#handedOut.clear()
    this.#handedOut.add(value)
    return value
  }

  /** False when the execution has ended; notes a call from outside an activation, which replay could not repeat. */
  #mayAct(): boolean {
    if (this.isEnded) return false
    if (!this.isActive) this.#noteForeign()
    return this.isActive
  }

  #noteForeign(): void {
    if (this.isOver) return
    const message = this.#foreignText()
    this.#end({ type: 'foreign', message })
    process.emitWarning(message, { code: 'HOLDFAST_FOREIGN_WAIT' })
  }

  #foreignText(): string {
    const { name, instance } = this.start
    return (
      `orchestration '${name}' (instance '${instance}') waits for something that is not a task of its context. ` +
      'Do I/O in an activity (ctx.scheduleActivity), sleep with ctx.scheduleTimer, wait for outside news with ctx.waitForEvent ' +
      'or ctx.dequeueEvent, and take time and chance from ctx.utcNow, ctx.newGuid and ctx.random'
    )
  }

  // The code itself.

  #resume(step: () => IteratorResult<unknown, unknown>): void {
    try {
      for (let next = step(); ; ) {
        if (this.isEnded) return
        // A returned task counts as yielded: an async function would await it, too.
        if (next.done === true && !isTask(next.value)) {
          this.#complete(next.value)
          return
        }
        const yielded = next.value
        const isReturned = next.done === true
        if (!isTask(yielded)) {
          next = this.#passThrough(yielded)
          continue
        }
        yielded.startForYield()
        if (!yielded.isSettled) {
          this.#await(yielded, isReturned)
          return
        }
        if (this.isEnded) return
        next = this.#give(yielded, isReturned)
      }
    } catch (error) {
      this.#fail(error)
    }
  }

  #isReturn = false

  #await(task: TaskNode, isReturned: boolean): void {
    this.#awaited = task
    this.#isReturn = isReturned
  }

  #proceed(): void {
    const task = this.#awaited
    if (task === undefined) return
    this.#awaited = undefined
    guarded(this, () => this.#resume(() => this.#give(task, this.#isReturn)))
  }

  /** Hands the result of a settled task to the generator, or ends with it when the task was returned. */
  #give(task: TaskNode, isReturned: boolean): IteratorResult<unknown, unknown> {
    task.isConsumed = true
    if (isReturned) {
      if (task.state !== 'done') throw task.error
      return { done: true, value: task.result }
    }
    const generator = this.#generator as Iterator<unknown, unknown, unknown>
    if (task.state === 'done') return generator.next(task.result)
    return throwInto(generator, task.error)
  }

  #passThrough(value: unknown): IteratorResult<unknown, unknown> {
    const generator = this.#generator as Iterator<unknown, unknown, unknown>
    if (this.#handedOut.has(value)) return generator.next(value)
    const kind = isObject(value) && 'then' in value ? 'a promise' : describe(value)
    const message =
      `Invalid generator step result: orchestration '${this.start.name}' yielded ${kind}; ` +
      'yield only what its context gives (ctx.scheduleActivity, ctx.scheduleTimer, ctx.waitForEvent, ctx.all, ctx.race, …)'
    return throwInto(generator, new HoldfastError(message, { code: 'INVALID_YIELD' }))
  }

  #complete(value: unknown): void {
    if (this.isEnded) return
    if (!this.isActive) {
      this.#noteForeign()
      return
    }
    try {
      const output = encode(value, `output of orchestration '${this.start.name}'`, this.payloadLimit)
      this.#end({ type: 'completed', output })
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    if (this.isEnded) return
    if (this.isActive) this.#end({ type: 'failed', error: encodeError(error) })
    else this.#noteForeign()
  }

  #end(outcome: Outcome): void {
    this.#outcome = outcome
    if (outcome.type === 'completed' || outcome.type === 'continued') this.#warnOfUnused()
    this.#unused.clear()
    this.#open.clear()
    this.#awaited = undefined
  }

  /** Tasks are lazy: what was never awaited never happened, which is hardly what was meant. */
  #warnOfUnused(): void {
    if (this.#unused.size === 0 || this.isReplaying) return
    const titles = [...this.#unused].slice(0, MAX_TITLES).map((task) => task.title)
    const more = this.#unused.size > MAX_TITLES ? ` and ${this.#unused.size - MAX_TITLES} more` : ''
    const { name, instance, execution } = this.start
    const message = `ended with steps that were made and never awaited or yielded, so they did not happen: ${titles.join(', ')}${more}`
    trace({ level: 'warn', message, source: 'orchestration', name, instanceId: instance, executionId: execution })
  }
}

function throwInto(generator: Iterator<unknown, unknown, unknown>, error: unknown): IteratorResult<unknown, unknown> {
  if (generator.throw === undefined) throw error
  return generator.throw(error)
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

function isIterator(value: unknown): value is Iterator<unknown, unknown, unknown> & { throw: unknown } {
  return isObject(value) && Symbol.iterator in value && typeof (value as { next?: unknown }).next === 'function'
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  return typeof value === 'object' ? 'an object' : `a ${typeof value} (${String(value).slice(0, 40)})`
}
