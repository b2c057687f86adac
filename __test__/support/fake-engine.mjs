// An engine in memory behind the native interface: enough of the real one to run the sdk as a user would, with no database.
//
// It speaks the crossing exactly and keeps the same books: facts and commands in order, mailboxes, open commands. A second
// activation of the same code is compared command by command, as replay does. No leases, no failures: those are the engine's.
// length: one stand-in for one interface; its parts share the books of an execution.
import { Buffer } from 'node:buffer'

const text = (value) => JSON.stringify(value)

/** One execution with its log. */
class Execution {
  constructor(id, number, start, now) {
    this.id = id
    this.number = number
    this.start = start
    this.facts = []
    this.commands = []
    this.delivered = 0
    this.frame = undefined
    this.inTurn = false
    this.hasRun = false
    this.open = new Map()
    this.history = []
    this.seed = (BigInt(number) * 0x9e3779b97f4a7c15n + BigInt(Buffer.byteLength(id))).toString(16).slice(-16)
    this.startedAt = now
    this.record('OrchestrationStarted', { name: start.name, version: start.version, input: start.input })
  }

  record(kind, data, source) {
    const event = { eventId: this.history.length + 1, kind, timestampMs: this.startedAt, data }
    if (source !== undefined) event.sourceEventId = source
    this.history.push(event)
    return event.eventId
  }

  get isReady() {
    return !this.inTurn && (!this.hasRun || this.delivered < this.facts.length)
  }

  /** Messages that nobody read, as the mailbox rule says. */
  unread() {
    const books = new Map()
    const book = (kind, name) => {
      const key = `${kind} ${name}`
      if (!books.has(key)) books.set(key, { unread: [], waits: [] })
      return books.get(key)
    }
    const log = [...(this.start.carried ?? []).map((each) => ({ at: 0, message: each }))]
    this.facts.forEach((fact, i) => {
      if (fact.t === 'event' || fact.t === 'queue') log.push({ at: i + 1, message: { kind: fact.t, name: fact.name, data: fact.data } })
    })
    this.commands.forEach(({ kind, body, seq }) => {
      if (kind === 'event' || kind === 'queue') log.push({ at: body.step + 0.5, wait: { kind, name: body.name, seq } })
      if (kind === 'cancel') log.push({ at: body.step + 0.5, cancel: body.seq })
    })
    log.sort((a, b) => a.at - b.at)
    for (const { message, wait, cancel } of log) {
      if (message) {
        const { unread, waits } = book(message.kind, message.name)
        if (waits.length > 0) waits.shift()
        else unread.push(message)
      } else if (wait) {
        const { unread, waits } = book(wait.kind, wait.name)
        if (unread.length > 0) unread.shift()
        else waits.push(wait.seq)
      } else {
        for (const { waits } of books.values()) if (waits.includes(cancel)) waits.splice(waits.indexOf(cancel), 1)
      }
    }
    return [...books.values()].flatMap(({ unread }) => unread)
  }
}

/** The store that providers of one URL share. */
class World {
  constructor() {
    this.instances = new Map()
    this.runtimes = new Set()
    this.waiters = []
    this.frames = 0
    this.turnsRun = 0
    this.clock = 1_700_000_000_000
  }

  now() {
    return (this.clock += 1)
  }

  startInstance(id, name, version, input, parent) {
    const found = this.instances.get(id)
    if (found) return { created: false, same: found.name === name && text(found.input) === text(input) }
    const now = this.now()
    const instance = { id, name, version, input, parent, status: 'Pending', output: null, error: null, customStatus: null, customStatusVersion: 0, values: new Map(), createdAt: now, updatedAt: now, parked: [] }
    instance.execution = new Execution(id, 1, { name, version, input }, now)
    instance.executions = [instance.execution]
    this.instances.set(id, instance)
    this.wake()
    return { created: true, same: true }
  }

  wake() {
    for (const runtime of this.runtimes) runtime.wake()
  }

  fact(instance, execution, fact) {
    if (instance.execution !== execution || isOver(instance)) return
    execution.facts.push({ at: this.now(), ...fact })
    this.wake()
  }

  settle(instance, execution, seq, fact, kind, data) {
    const command = execution.open.get(seq)
    if (command === undefined) return
    execution.open.delete(seq)
    execution.record(kind, data, command.event)
    this.fact(instance, execution, { seq, ...fact })
  }

  end(instance, status, fields) {
    Object.assign(instance, { status, updatedAt: this.now() }, fields)
    const execution = instance.execution
    for (const seq of [...execution.open.keys()]) this.withdraw(execution, seq)
    if (status === 'Completed') execution.record('OrchestrationCompleted', { output: instance.output })
    else execution.record('OrchestrationFailed', { error: instance.error })
    if (instance.parent) {
      const { instance: parent, execution: number, seq } = instance.parent
      const of = this.instances.get(parent)
      if (of?.execution.number === number) {
        if (status === 'Completed') this.settle(of, of.execution, seq, { t: 'done', value: instance.output }, 'SubOrchestrationCompleted', { result: instance.output })
        else this.settle(of, of.execution, seq, { t: 'fail', error: instance.error }, 'SubOrchestrationFailed', { error: instance.error })
      }
    }
    this.waiters = this.waiters.filter(({ id, done }) => id !== instance.id || (done(), false))
  }

  withdraw(execution, seq) {
    const command = execution.open.get(seq)
    execution.open.delete(seq)
    clearTimeout(command?.timer)
    if (command?.job) for (const runtime of this.runtimes) runtime.cancelJob(command.job)
  }
}

const isOver = ({ status }) => ['Completed', 'Failed', 'Cancelled'].includes(status)

const worlds = new Map()

/** A binding over worlds of its own. `cold: true` keeps no frame between turns. */
export function fakeBinding({ cold = false } = {}) {
  const log = { calls: [], options: undefined, batches: [], answers: [] }

  class JsPostgresProvider {
    static async connect(url, schema, options) {
      log.calls.push(['connect', url, schema, options])
      if (url.includes('refused')) {
        return { failure: { code: 'CIRCUIT_OPEN', message: 'the database does not answer', retryable: true, retryAfterMs: 2000 } }
      }
      const key = `${url} ${schema}`
      if (!worlds.has(key)) worlds.set(key, new World())
      const provider = new JsPostgresProvider()
      provider.world = worlds.get(key)
      return { value: provider }
    }
    async close() {
      log.calls.push(['close'])
      return { value: null }
    }
    async warm() {
      log.calls.push(['warm'])
      return { value: null }
    }
    stats() {
      return '{"pool":{"total":0},"counters":{}}'
    }
  }

  class JsClient {
    constructor({ world }) {
      this.world = world
    }
    async start(items) {
      log.calls.push(['start', items])
      const replies = JSON.parse(items).map(({ id, name, version, input }) => this.world.startInstance(id, name, version, input))
      return { value: text(replies) }
    }
    async send(item) {
      const { kind, instance: id, name, data, reason } = JSON.parse(item)
      const instance = this.world.instances.get(id)
      if (instance === undefined || isOver(instance)) return { value: text({ accepted: instance === undefined && kind !== 'cancel' }) }
      const { execution } = instance
      if (kind === 'cancel') {
        execution.record('OrchestrationCancelRequested', { reason })
        this.world.fact(instance, execution, { t: 'cancel', reason })
      } else {
        execution.record(kind === 'event' ? 'ExternalEvent' : 'QueueEventDelivered', { name, data })
        this.world.fact(instance, execution, { t: kind, name, data })
      }
      return { value: text({ accepted: true }) }
    }
    async get(id) {
      const instance = this.world.instances.get(id)
      if (instance === undefined) return { value: null }
      const { name, status, output, error, customStatus, customStatusVersion, createdAt, updatedAt, parent, execution } = instance
      const shown = { instance: id, name, version: execution.start.version, execution: execution.number, status, output, error, parkedAt: null, tag: null, customStatus, customStatusVersion, createdAt, updatedAt, parent: parent?.instance ?? null }
      return { value: text(shown) }
    }
    async wait(id, timeoutMs) {
      const instance = this.world.instances.get(id)
      if (instance === undefined || !isOver(instance)) {
        const ended = await new Promise((resolve) => {
          const timer = setTimeout(() => resolve(false), timeoutMs)
          this.world.waiters.push({ id, done: () => (clearTimeout(timer), resolve(true)) })
        })
        if (!ended) return { value: null }
      }
      return await this.get(id)
    }
    async history(id, number) {
      const execution = this.world.instances.get(id)?.executions.find((each) => each.number === number)
      return { value: text(execution?.history ?? []) }
    }
    /** Only what needs no database is answered here. */
    async manage(request) {
      log.calls.push(['manage', request])
      const { op, instance: id } = JSON.parse(request)
      if (op === 'executions') return { value: text((this.world.instances.get(id)?.executions ?? []).map((each) => each.number)) }
      return { failure: { code: 'INTERNAL', message: `no ${op} without a database`, retryable: false } }
    }
  }

  class JsRuntime {
    constructor({ world }, options) {
      this.world = world
      log.options = options
      this.jobs = new Map()
      this.queue = []
      this.aborts = []
      this.evict = []
      this.nextHandle = 1
      this.turns = new Map()
    }
    async start(handlers) {
      log.handlers = JSON.parse(handlers)
      this.handlers = log.handlers
      this.world.runtimes.add(this)
      return { value: null }
    }
    next(max) {
      return new Promise((resolve) => {
        this.pull = { max, resolve }
        this.wake()
      })
    }
    wake() {
      if (this.pull === undefined) return
      const batch = this.#batch(this.pull.max)
      if (batch === undefined && !this.isClosed) return
      const { resolve } = this.pull
      this.pull = undefined
      if (batch) log.batches.push(batch)
      resolve(batch === undefined ? null : text(batch))
    }
    #batch(max) {
      const turns = []
      for (const instance of this.world.instances.values()) {
        if (turns.length >= max || this.isClosing) break
        const { execution } = instance
        if (isOver(instance) || !execution.isReady) continue
        const version = execution.start.version ?? this.#newest(instance.execution.start.name)
        if (!this.handlers.orchestrations.some((each) => each.name === execution.start.name && each.version === version)) continue
        execution.start.version = version
        execution.history[0].data.version = version
        turns.push(this.#activation(instance, execution))
      }
      const activities = this.isClosing ? [] : this.queue.splice(0, max)
      const aborts = this.aborts.splice(0)
      const evict = this.evict.splice(0)
      if (turns.length + activities.length + aborts.length + evict.length === 0) return undefined
      return { turns, activities: activities.map(({ job }) => job), aborts, evict }
    }
    #newest(name) {
      const versions = this.handlers.orchestrations.filter((each) => each.name === name).map((each) => each.version)
      return versions.sort((a, b) => a.localeCompare(b, undefined, { numeric: true })).at(-1)
    }
    #activation(instance, execution) {
      const isWarm = execution.frame !== undefined && !cold
      if (!isWarm && execution.frame !== undefined) this.evict.push(execution.frame)
      if (!isWarm) execution.frame = ++this.world.frames
      const from = isWarm ? execution.delivered : 0
      const activation = { h: execution.frame, n: from, f: execution.facts.slice(from), r: isWarm ? 0 : execution.delivered }
      if (!isWarm) {
        const { name, version, input, carried, customStatus, values } = execution.start
        activation.start = { instance: instance.id, execution: execution.number, name, version, input, seed: execution.seed, atMs: execution.startedAt, replaying: execution.hasRun }
        if (instance.parent) activation.start.parent = instance.parent.instance
        if (carried?.length) activation.start.carried = carried
        if (values?.length) activation.start.values = values
        if (customStatus !== undefined && customStatus !== null) activation.start.customStatus = customStatus
      }
      execution.inTurn = true
      execution.hasRun = true
      execution.delivered = execution.facts.length
      if (instance.status === 'Pending') instance.status = 'Running'
      this.turns.set(execution.frame, { instance, execution, isWarm })
      this.world.turnsRun += 1
      return activation
    }
    complete(raw) {
      const { turns, activities } = JSON.parse(raw)
      log.answers.push({ turns, activities })
      for (const answer of activities) this.#activityEnded(answer)
      for (const reply of turns) this.#turnEnded(reply)
      this.wake()
      this.#closeWhenIdle()
    }
    #turnEnded(reply) {
      const { instance, execution, isWarm } = this.turns.get(reply.h)
      this.turns.delete(reply.h)
      execution.inTurn = false
      const given = reply.c.map((each) => Object.entries(each)[0])
      const known = isWarm ? 0 : execution.commands.length
      for (const [i, [kind, body]] of given.slice(0, known).entries()) {
        const { kind: oldKind, body: old } = execution.commands[i]
        if (text([kind, body]) === text([oldKind, old])) continue
        return this.#fail(instance, 'NONDETERMINISM', `nondeterministic: expected ${text(old)} but found ${text(body)}`)
      }
      if (reply.o === 'diverged' || given.length < known) return this.#fail(instance, 'NONDETERMINISM', 'nondeterministic: a recorded step was not asked for')
      if (reply.o?.foreign) return this.#fail(instance, 'FOREIGN_WAIT', reply.o.foreign.message)
      for (const [kind, body] of given.slice(known)) this.#command(instance, execution, kind, body)
      for (const { seq, at, ok, err } of reply.l ?? []) {
        const { event } = execution.open.get(seq)
        execution.open.delete(seq)
        execution.facts.push(err === undefined ? { t: 'done', at, seq, value: ok } : { t: 'fail', at, seq, error: err })
        execution.delivered = execution.facts.length
        execution.record(err === undefined ? 'ActivityCompleted' : 'ActivityFailed', err === undefined ? { result: ok } : { error: err }, event)
      }
      const cancel = execution.facts.find((fact) => fact.t === 'cancel')
      if (cancel && !execution.wasCancelled) {
        execution.wasCancelled = true
        for (const seq of [...execution.open.keys()].filter((each) => execution.commands[each].body.step < execution.facts.indexOf(cancel) + 1)) this.world.withdraw(execution, seq)
      }
      if (cancel && reply.o !== 'waiting') {
        const error = { name: 'CancelledError', code: 'CANCELLED', message: cancel.reason === '' ? 'canceled' : `canceled: ${cancel.reason}` }
        return this.world.end(instance, 'Cancelled', { error })
      }
      const [word, value] = typeof reply.o === 'string' ? [reply.o] : Object.entries(reply.o)[0]
      if (word === 'completed') this.world.end(instance, 'Completed', { output: value.output })
      if (word === 'failed') this.world.end(instance, 'Failed', { error: value.error })
      if (word === 'continued') this.#continue(instance, execution, value)
    }
    #fail(instance, code, message) {
      this.world.end(instance, 'Failed', { error: { name: 'NondeterminismError', code, message } })
    }
    #continue(instance, execution, { input, version }) {
      execution.record('OrchestrationContinuedAsNew', { input, version: version ?? null })
      for (const seq of [...execution.open.keys()]) this.world.withdraw(execution, seq)
      const start = { name: execution.start.name, version: version ?? null, input, carried: execution.unread(), customStatus: instance.customStatus, values: [...instance.values].map(([key, { value, at }]) => ({ key, value, at })) }
      instance.execution = new Execution(instance.id, execution.number + 1, start, this.world.now())
      instance.executions.push(instance.execution)
    }
    #command(instance, execution, kind, body) {
      const seq = execution.commands.length
      execution.commands.push({ kind, body, seq })
      const { world } = this
      switch (kind) {
        case 'activity': {
          const event = execution.record('ActivityScheduled', { name: body.name, input: body.input })
          const job = { h: this.nextHandle++, name: body.name, input: body.input, instance: instance.id, execution: execution.number, event, orchestration: execution.start.name, version: execution.start.version, attempt: 1, delivery: 1, maxAttempts: body.retry?.maxAttempts ?? 1, tag: body.tag ?? null, session: body.session ?? null, workerId: 'fake-1', timeoutMs: body.timeoutMs ?? null }
          execution.open.set(seq, { event, job: job.h })
          const entry = { job, instance, execution, seq, body }
          this.jobs.set(job.h, entry)
          this.queue.push(entry)
          return
        }
        case 'timer': {
          const event = execution.record('TimerCreated', { fire_at_ms: world.clock + body.delayMs })
          const fire = () => world.settle(instance, execution, seq, { t: 'done', value: null }, 'TimerFired', {})
          execution.open.set(seq, { event, timer: setTimeout(fire, Math.min(body.delayMs, 2 ** 31 - 1)) })
          return
        }
        case 'child': {
          const id = body.instance ?? `${instance.id}::sub::${execution.history.length + 1}`
          const event = execution.record('SubOrchestrationScheduled', { name: body.name, instance: id, input: body.input })
          execution.open.set(seq, { event })
          const { created } = world.startInstance(id, body.name, body.version ?? null, body.input, { instance: instance.id, execution: execution.number, seq })
          const error = { name: 'InstanceExistsError', code: 'INSTANCE_EXISTS', message: `sub-orchestration instance id '${id}' already exists` }
          if (!created) world.settle(instance, execution, seq, { t: 'fail', error }, 'SubOrchestrationFailed', { error })
          return
        }
        case 'detached':
          execution.record('OrchestrationChained', {})
          world.startInstance(body.instance, body.name, body.version ?? null, body.input)
          return
        case 'cancel':
          world.withdraw(execution, body.seq)
          return
        case 'status':
          instance.customStatus = body.status
          instance.customStatusVersion += 1
          execution.record('CustomStatusUpdated', {})
          return
        case 'set':
          instance.values.set(body.key, { value: body.value, at: body.at })
          execution.record('KeyValueSet', {})
          return
        case 'clear':
          instance.values.delete(body.key)
          execution.record('KeyValueCleared', {})
          return
        case 'clearAll':
          instance.values.clear()
          execution.record('KeyValuesCleared', {})
          return
        case 'local':
          execution.open.set(seq, { event: execution.record('ActivityScheduled', { name: body.name, input: null }) })
          return
        case 'read': {
          const event = execution.record('ActivityScheduled', { name: '__holdfast:get-value', input: { instance: body.instance, key: body.key } })
          execution.open.set(seq, { event })
          const value = world.instances.get(body.instance)?.values.get(body.key)?.value ?? null
          world.settle(instance, execution, seq, { t: 'done', value }, 'ActivityCompleted', { result: value })
          return
        }
        default:
          execution.record(kind === 'event' ? 'ExternalSubscribed' : 'QueueSubscribed', { name: body.name })
      }
    }
    #activityEnded(answer) {
      const entry = this.jobs.get(answer.h)
      if (entry === undefined) return
      this.jobs.delete(answer.h)
      const { instance, execution, seq, job } = entry
      if (answer.abandon) return
      if ('ok' in answer) return this.world.settle(instance, execution, seq, { t: 'done', value: answer.ok }, 'ActivityCompleted', { result: answer.ok })
      const mayRetry = answer.err.retryable !== false && !entry.body.retry?.nonRetryable?.includes(answer.err.name)
      if (job.attempt < job.maxAttempts && mayRetry) {
        const again = { ...entry, job: { ...job, h: this.nextHandle++, attempt: job.attempt + 1, delivery: job.delivery + 1 } }
        this.jobs.set(again.job.h, again)
        execution.open.get(seq).job = again.job.h
        this.queue.push(again)
        return
      }
      this.world.settle(instance, execution, seq, { t: 'fail', error: answer.err }, 'ActivityFailed', { error: answer.err })
    }
    cancelJob(h) {
      const waiting = this.queue.findIndex(({ job }) => job.h === h)
      if (waiting >= 0) {
        this.queue.splice(waiting, 1)
        this.jobs.delete(h)
      } else if (this.jobs.has(h)) {
        this.aborts.push({ h, reason: 'cancelled' })
        this.wake()
      }
    }
    hurry() {
      log.calls.push(['hurry'])
    }

    lifeIntervalMs() {
      return 0
    }

    health() {
      return null
    }

    async shutdown(timeoutMs) {
      log.calls.push(['shutdown', timeoutMs])
      this.isClosing = true
      for (const { job } of this.queue.splice(0)) this.jobs.delete(job.h)
      const timer = setTimeout(() => {
        this.aborts.push(...[...this.jobs.keys()].map((h) => ({ h, reason: 'shutdown' })))
        this.wake()
      }, timeoutMs)
      await new Promise((resolve) => {
        this.closed = resolve
        this.#closeWhenIdle()
      })
      clearTimeout(timer)
      return { value: null }
    }
    #closeWhenIdle() {
      if (this.closed === undefined || this.jobs.size > 0 || this.turns.size > 0) return
      this.isClosed = true
      this.world.runtimes.delete(this)
      this.closed()
      this.wake()
    }
  }

  const JsLog = { initTracing: () => ({}), startLogging() {}, logLine() {} }
  // Nothing is checked here: every rule is the engine's.
  const JsOptions = { ofRuntime: (value) => ({ value }), ofPool: (value) => ({ value }) }
  return { binding: { JsPostgresProvider, JsClient, JsRuntime, JsLog, JsOptions }, log }
}
