/**
 * One live execution: the user's generator or async function with everything it has asked for and not yet got.
 *
 * The frame applies facts one by one and collects commands. It never waits itself: a generator runs synchronously, an async
 * function runs in the microtasks that the driver lets drain between two facts. It never throws for an error of user code.
 */
import { type ErrorPayload, activityError, encodeError, orchestrationError } from '../error-payload.js'
import { CancelledError, HoldfastError } from '../errors.js'
import { encode } from '../payload.js'
import { type Outcome, encodeCancel, encodeCommand, encodeClear, encodeLocal, encodeReply, encodeSet, encodeStatus } from './encode.js'
import { trace } from '../trace.js'
import { GeneratorRun, HandedOut, isGenerator } from './generator.js'
import { guarded } from './guard.js'
import { LocalTask, type StepEnd, refuseInStep } from './local.js'
import { Mailbox } from './mailbox.js'
import { OpenTasks } from './open.js'
import { SeededRandom, isSeed } from './random.js'
import { type CommandTask, type TaskHost, type TaskNode, ActivityCommandTask } from './task.js'
import { Unused } from './unused.js'
import { Values } from './values.js'
import type { ActivationStart, Fact } from './wire.js'

/** What runs in a frame: the registered function, already bound to its context. */
export type FrameBody = (frame: Frame) => unknown

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
  readonly values: Values
  applied = 0

  #random: SeededRandom | undefined
  #isStirred = false
  #issued = 0
  #hasSteps = false
  #commands: string[] = []
  #locals: string[] = []
  #unbegun: LocalTask[] = []
  #outcome: Outcome = { type: 'waiting' }
  #generator: GeneratorRun | undefined
  readonly #handedOut = new HandedOut()
  readonly #open = new OpenTasks()
  readonly #unused = new Unused()
  #events = new Mailbox<CommandTask>()
  #queues = new Mailbox<CommandTask>()

  constructor(
    readonly id: number,
    readonly start: ActivationStart,
    readonly payloadLimit: number,
  ) {
    // Before the code runs: what comes of it later would be taken for the code's own error.
    if (!isSeed(start.seed)) throw new SyntaxError(`the seed ${JSON.stringify(start.seed)} is no number in hexadecimal`)
    this.isReplaying = start.replaying
    this.now = start.atMs
    this.customStatus = start.customStatus ?? null
    this.values = new Values(start.values)
    for (const { kind, name, data } of start.carried ?? []) this.#mailbox(kind).deliver(name, data)
  }

  /** Its stream of random numbers; made when it is asked for. */
  get random(): SeededRandom {
    return (this.#random ??= new SeededRandom(this.start.seed))
  }

  /** True when no further fact can change anything. */
  get isEnded(): boolean {
    return this.#outcome.type !== 'waiting'
  }

  /** Runs the code up to its first wait. */
  begin(body: FrameBody): void {
    try {
      this.#run(guarded(this, () => body(this)))
    } catch (error) {
      this.failed(error)
    }
  }

  #run(result: unknown): void {
    if (isGenerator(result)) {
      const run = new GeneratorRun(this, result, this.#handedOut)
      this.#generator = run
      guarded(this, () => run.begin())
    } else if (isObject(result) && Symbol.asyncIterator in result) {
      const message = `orchestration '${this.start.name}' is an async generator; use function* with yield, or async function with await`
      this.failed(new HoldfastError(message, { code: 'INVALID_ORCHESTRATION' }))
    } else if (isObject(result) && 'then' in result) {
      this.isAsync = true
      Promise.resolve(result).then(
        (value) => this.completed(value),
        (error: unknown) => this.failed(error),
      )
    } else {
      this.completed(result)
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
    const run = this.#generator
    if (run !== undefined) guarded(this, () => run.goOn())
  }

  /** Local steps that are to run now: no recorded result was left for them. Each is given out once. */
  takeLocals(): LocalTask[] {
    const tasks = this.#unbegun.filter((task) => this.#open.get(task.seq) === task)
    this.#unbegun = []
    return tasks
  }

  /** Applies the result of a local step as the next fact, unless nobody waits for it any more. */
  applyLocal(task: LocalTask, end: StepEnd): void {
    if (this.isEnded || this.#open.get(task.seq) !== task) return
    this.#locals.push(encodeLocal(task.seq, this.now, end))
    // What the code sees has been through JSON, as in a replay.
    const fact: Fact =
      'ok' in end
        ? { t: 'done', at: this.now, seq: task.seq, value: JSON.parse(end.ok) }
        : { t: 'fail', at: this.now, seq: task.seq, error: JSON.parse(end.err) as ErrorPayload }
    this.apply(fact)
  }

  /** After the code has come to a stand: an async function that waits for nothing of ours waits for something foreign. */
  checkForeign(): void {
    if (this.isAsync && !this.isEnded && this.#open.size === 0) this.#end({ type: 'foreign', message: this.#foreignText() })
  }

  /** The answer to the activation; until the next one the code must not run. */
  reply(): string {
    const text = encodeReply(this.id, this.applied, this.#commands, this.#outcome, this.#locals)
    this.#commands = []
    this.#locals = []
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
    const message = reason === '' ? 'canceled' : `canceled: ${reason}`
    this.cancellation = new CancelledError(message, { code: 'CANCELLED' })
    // Replay must show the same text as the live run, so the stack holds no place of this package.
    this.cancellation.stack = `CancelledError: ${message}`
    const open = this.#open.values()
    this.#open.clear()
    for (const task of open) {
      const { spec } = task
      if (spec.type === 'event' || spec.type === 'queue') this.#mailbox(spec.type).forget(spec.name, task)
      task.fail(this.cancellation)
    }
    this.#generator?.awaited?.fail(this.cancellation)
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

  /** Throws when it is called by the code of a step of this execution. */
  refuseInStep(): void {
    if (this.#hasSteps) refuseInStep(this)
  }

  made(task: TaskNode): void {
    this.refuseInStep()
    this.#unused.add(task)
  }

  used(task: TaskNode): void {
    this.#unused.delete(task)
  }

  issue(task: CommandTask): void {
    if (!this.#mayAct()) return
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
    this.#open.add(task)
    if (task instanceof LocalTask) {
      this.#hasSteps = true
      this.#unbegun.push(task)
    }
  }

  withdraw(task: CommandTask): void {
    if (!this.#open.delete(task.seq)) return
    const { spec } = task
    if (spec.type === 'event' || spec.type === 'queue') this.#mailbox(spec.type).forget(spec.name, task)
    if (task instanceof LocalTask) task.abort()
    this.#command(encodeCancel(task.seq, this.applied))
  }

  setStatus(status: string | null): void {
    if (!this.#mayAct()) return
    this.customStatus = status
    this.#command(encodeStatus(status, this.applied))
  }

  /** Keeps a checked value. */
  setValue(key: string, value: string): void {
    if (!this.#mayAct()) return
    this.values.set(key, value, this.now)
    this.#command(encodeSet(key, value, this.now, this.applied))
  }

  /** Drops the value of a key, or without one all values. */
  clearValue(key: string | undefined): void {
    if (!this.#mayAct()) return
    if (key === undefined) this.values.clearAll()
    else this.values.clear(key)
    this.#command(encodeClear(key, this.applied))
  }

  /** Gives a command that nothing answers. */
  #command(text: string): void {
    this.#issued += 1
    this.#commands.push(text)
  }

  continueAsNew(input: string, version: string | undefined): void {
    if (this.#mayAct()) this.#end({ type: 'continued', input, version })
  }

  /** Remembers a value of `utcNow`, `newGuid` or `random`, so that a generator may yield it. */
  handOut<T extends number | string>(value: T): T {
    return this.#handedOut.add(value)
  }

  /** False when the execution has ended; notes a call from outside an activation, which replay could not repeat. */
  #mayAct(): boolean {
    this.refuseInStep()
    if (this.isEnded) return false
    if (!this.isActive) this.#noteForeign()
    return this.isActive
  }

  #noteForeign(): void {
    if (this.isEnded) return
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

  completed(value: unknown): void {
    if (this.isEnded) return
    if (!this.isActive) {
      this.#noteForeign()
      return
    }
    try {
      const output = encode(value, `output of orchestration '${this.start.name}'`, this.payloadLimit)
      this.#end({ type: 'completed', output })
    } catch (error) {
      this.failed(error)
    }
  }

  failed(error: unknown): void {
    if (this.isEnded) return
    if (this.isActive) this.#end({ type: 'failed', error: encodeError(error) })
    else this.#noteForeign()
  }

  #end(outcome: Outcome): void {
    this.#outcome = outcome
    if (outcome.type === 'completed' || outcome.type === 'continued') this.#warnOfUnused()
    this.#unused.clear()
    for (const task of this.#open.values()) if (task instanceof LocalTask) task.abort()
    this.#open.clear()
    this.#generator?.stop()
  }

  #warnOfUnused(): void {
    const message = this.isReplaying ? undefined : this.#unused.text()
    if (message === undefined) return
    const { name, instance, execution } = this.start
    trace({ level: 'warn', message, source: 'orchestration', name, instanceId: instance, executionId: execution })
  }
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}
