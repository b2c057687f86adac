// The public contract of holdfast on one page. Written by `npm run build` from the sources in sdk/: edit those.
/// <reference types="node" />

/** How a call can be given up. */
export interface AbortOptions {
    /** Aborted, it ends the call, which rejects with the reason of the signal. What was sent by then may have happened. */
    signal?: AbortSignal | undefined;
}

/** How long to wait, and until when. */
export interface WaitOptions extends AbortOptions {
    /** Longest wait, in ms. */
    timeoutMs?: number | undefined;
}

/**
 * What an activity is given.
 *
 * @example
 * runtime.registerActivity('charge', async (ctx, order) =>
 *   pay(order, { idempotencyKey: ctx.idempotencyKey, signal: ctx.signal }))
 */
export declare class ActivityContext {
    private constructor();
    #private;
    /** Id of the instance that asked for it; of a standalone activity, its own id. */
    readonly instanceId: string;
    /** Number of that instance's execution; 0 for a standalone activity. */
    readonly executionId: number;
    /** Name of the orchestration that asked; null for a standalone activity. */
    readonly orchestrationName: string | null;
    /** Its version. */
    readonly orchestrationVersion: string | null;
    /** Name of this activity. */
    readonly activityName: string;
    /** The node that runs it. */
    readonly workerId: string;
    /** Session that it belongs to, or null. */
    readonly sessionId: string | null;
    /** Which try of its retry policy this is, from 1. */
    readonly attempt: number;
    /** Which delivery this is, from 1; more than the attempts after a crash. */
    readonly delivery: number;
    /** When its time limit passes, by this machine's clock; null without one. */
    readonly deadline: Date | null;
    /** The same for every try and delivery of this step: pass it on to what you call, so that a repeated effect is recognised. */
    readonly idempotencyKey: string;
    /** What `heartbeat` was given last by an earlier try or delivery, so that this one can go on from there; else null. */
    readonly lastHeartbeatDetails: unknown;
    /** Aborted when the activity is to stop: cancelled, out of time, lost to another node, or the runtime shuts down. */
    get signal(): AbortSignal;
    /** True once the activity is to stop. */
    isCancelled(): boolean;
    /**
     * Says that the activity is alive, and how far it is: the next try or delivery finds it in `lastHeartbeatDetails`, lists show
     * it. Call it as often as you like: calls are gathered and stored once a second. Details are JSON of at most 64 KiB. With
     * `heartbeatTimeoutMs`, silence for that long ends the try.
     *
     * @example
     * for (let page = (ctx.lastHeartbeatDetails ?? 0) + 1; page <= pages; page++) {
     *   await load(page, { signal: ctx.signal })
     *   ctx.heartbeat(page)
     * }
     */
    heartbeat(details?: unknown): void;
    /** Routing label, or null. */
    tag(): string | null;
    /** A client on the runtime's provider; null once the activity has ended. */
    getClient(): Client | null;
    /** Logs a line. */
    traceInfo(message: string): void;
    /** Logs a warning. */
    traceWarn(message: string): void;
    /** Logs an error. */
    traceError(message: string): void;
    /** Logs a detail. */
    traceDebug(message: string): void;
}

/**
 * A standalone activity that was queued.
 *
 * @example
 * const handle = await client.enqueueActivity('mail', letter, { id: 'mail-17', retry: { maxAttempts: 5 } })
 * const receipt = await handle.result({ timeoutMs: 30_000 })
 */
export declare class ActivityHandle<O = unknown> {
    private constructor();
    #private;
    /** Id of the activity. */
    readonly id: string;
    /** False when the id was taken before by a task with the same name and input; that one goes on undisturbed. */
    readonly created: boolean;
    /**
     * Waits for the end and gives the result. Rejects with {@link ActivityFailedError} (code `POISONED` when its deliveries were
     * used up), with {@link CancelledError}, with {@link TimeoutError} when its own time limit passed or `timeoutMs` is given and
     * over, with the reason of a `signal` that is aborted, and with code `NOT_FOUND` when nothing is stored about it: it ended
     * and its `retention` is over.
     */
    result(options?: WaitOptions): Promise<O>;
    /** How it stands; `NotFound` when nothing is stored about it. */
    status(options?: AbortOptions): Promise<ActivityInfo<O>>;
    /**
     * Stops it: it never starts, or its signal is aborted (at once in this process, within a heartbeat interval elsewhere).
     * `cancelled` is false when it has ended.
     */
    cancel(reason?: string, options?: AbortOptions): Promise<{
        cancelled: boolean;
    }>;
}

/** What `listActivities` lists. Filters that are absent keep everything. */
export interface ActivityFilter {
    status?: Exclude<ActivityStatus, 'NotFound'> | undefined;
    /** Name of the activity. */
    name?: string | undefined;
    tag?: string | undefined;
    /** How the id begins. */
    idPrefix?: string | undefined;
    /** Activities of one page, 1 to 1000. Default: 100. */
    limit?: number | undefined;
    /** `cursor` of the page before. Absent: the first page. */
    cursor?: string | undefined;
}

/** What is known about a standalone activity. Times are ms since 1970. */
export interface ActivityInfo<O = unknown> {
    id: string;
    status: ActivityStatus;
    /** Name of the activity. */
    name?: string;
    /** Try of its retry policy, from 1. */
    attempt?: number;
    /** Deliveries of this try. */
    delivery?: number;
    tag?: string;
    /** The node that runs it. */
    node?: string;
    /** What its body told last with `ctx.heartbeat`. */
    heartbeatDetails?: unknown;
    /** When that was stored. */
    heartbeatAt?: number;
    /** When it was to start for the first time. */
    scheduledAt?: number;
    /** When it may start; while it runs, when its lease ends. */
    dueAt?: number;
    endedAt?: number;
    /** Its result; lists leave it out. */
    result?: O;
    /** Why it did not succeed. */
    error?: Error;
}

/** What `listActivities` gives. */
export interface ActivityPage {
    /** By id, ascending. */
    activities: ActivityInfo[];
    /** Where the next page begins; absent on the last one. */
    cursor?: string;
}

/**
 * How a standalone activity stands: `Pending` waits for its time, its next try or a free worker; `Failed` has used up its retry
 * policy, `Poisoned` its deliveries. `NotFound`: it never was, or is not kept any more.
 */
export type ActivityStatus = 'Pending' | 'Running' | 'Completed' | 'Failed' | 'Poisoned' | 'Cancelled' | 'NotFound';

/** One task of `enqueueActivities`. A definition says what its input must be. */
export interface EnqueueItem extends EnqueueOptions {
    /** Name or definition. */
    activity: string | ActivityDefinition<never>;
    /** What the activity is given. */
    input?: unknown;
}

/** What a definition asks of the item that names it. */
export type EnqueueItemInput<T> = T extends {
    activity: ActivityDefinition<infer I>;
} ? undefined extends I ? {
    input?: I;
} : {
    input: I;
} : unknown;

/** What the activity of an item gives. */
export type EnqueueItemOutput<T> = T extends {
    activity: ActivityDefinition<never, infer O>;
} ? O : unknown;

/** How a standalone activity is queued. */
export interface EnqueueOptions {
    /** Id, unique among standalone activities; queuing it again finds the task that is there. Default: a fresh one, rising with time. */
    id?: string | undefined;
    /** From now until it may start, in ms. Default: 0. */
    delayMs?: number | undefined;
    /** Only workers whose tag filter has this tag run it. Default: none. */
    tag?: string | undefined;
    /** When and how often it is tried again. Default: one try. */
    retry?: RetryPolicy | undefined;
    /** Time limit of one try, in ms, from the start of its body. Default: the runtime's `activityTimeoutMs`. */
    timeoutMs?: number | undefined;
    /** Longest time between two calls of `ctx.heartbeat` within one try, in ms; a second or more. Default: none. */
    heartbeatTimeoutMs?: number | undefined;
    /**
     * How long it can be read after a success, in ms, or `'keep'` until it is deleted. Default: 60000 for `enqueueActivity`, 0
     * for `enqueueActivities`. Failed ones stay in any case, and one that somebody waits for stays for a minute.
     */
    retention?: number | 'keep' | undefined;
}

/**
 * Starts orchestrations and talks to them.
 *
 * @example
 * const client = new Client(provider)
 * await client.startOrchestration('order-17', 'checkout', order)
 * const done = await client.waitForOrchestration('order-17')
 */
export declare class Client extends ActivityQueue {
    #private;
    constructor(provider: PostgresProvider);
    /** Starts an instance. An id that exists is left alone: `created` is false then. */
    startOrchestration<I = unknown>(instanceId: string, orchestration: string | OrchestrationDefinition<I, unknown>, ...rest: InputArguments<I, [options?: AbortOptions]>): Promise<StartResult>;
    /** Starts an instance of an exact version. */
    startOrchestrationVersioned<I = unknown>(instanceId: string, orchestration: string | OrchestrationDefinition<I, unknown>, input: NoInfer<I>, version: string, options?: AbortOptions): Promise<StartResult>;
    /** The same as `startOrchestration`. */
    startOrchestrationTyped<I = unknown>(instanceId: string, orchestration: string | OrchestrationDefinition<I, unknown>, ...rest: InputArguments<I, [options?: AbortOptions]>): Promise<StartResult>;
    /** The same as `startOrchestrationVersioned`. */
    startOrchestrationVersionedTyped<I = unknown>(instanceId: string, orchestration: string | OrchestrationDefinition<I, unknown>, input: NoInfer<I>, version: string, options?: AbortOptions): Promise<StartResult>;
    /**
     * Starts an instance and gives its handle. Starting the same id with the same name and input again gives the handle of the
     * running one; with another name or input it rejects with {@link InstanceExistsError}.
     */
    start<O = unknown, I = unknown>(orchestration: string | OrchestrationDefinition<I, O>, ...rest: InputArguments<I, [options?: StartOptions & AbortOptions]>): Promise<OrchestrationHandle<O>>;
    /**
     * Starts many instances, thousands in one transaction, and tells of each whether it was made. Bad items reject before
     * anything is started. When it rejects later, also because of a `signal`, a part may have been started; the same call with the
     * same ids does the rest.
     *
     * @example
     * const started = await client.startMany(orders.map((order) => ({ orchestration: 'checkout', id: `order-${order.id}`, input: order })))
     * const fresh = started.filter(({ created }) => created)
     */
    startMany<const T extends readonly StartItem[]>(items: T & {
        readonly [K in keyof T]: T[K] & StartItemInput<T[K]>;
    }, options?: AbortOptions): Promise<StartedItem[]>;
    /** The handle of an instance, without asking whether it exists. */
    handle<O = unknown>(instanceId: string): OrchestrationHandle<O>;
    /**
     * Waits for the end of an instance; follows continue-as-new. Rejects with {@link TimeoutError} when the time is over (30 s
     * unless told otherwise), and with the reason of a `signal` that is aborted: options stand in the place of the time limit or
     * after it.
     *
     * @example
     * await client.waitForOrchestration('order-17', { timeoutMs: 60_000, signal: request.signal })
     */
    waitForOrchestration<O = unknown>(instanceId: string, timeoutMs?: number | WaitOptions, options?: AbortOptions): Promise<OrchestrationResult<O>>;
    /** Waits for the end of an instance, 30 s by default, and gives its output; rejects when it failed. */
    waitForOrchestrationTyped<O = unknown>(instanceId: string, timeoutMs?: number | WaitOptions, options?: AbortOptions): Promise<O>;
    /**
     * Asks an instance to stop. `accepted` is false when there is none of this id or it has ended; what is accepted takes effect:
     * the instance never completes.
     */
    cancelInstance(instanceId: string, reason?: string, options?: AbortOptions): Promise<SendResult>;
    /** The same as `cancelInstance`. */
    cancelOrchestration(instanceId: string, reason?: string, options?: AbortOptions): Promise<SendResult>;
    /** Raises a one-shot event; one that nobody waits for yet is kept. */
    raiseEvent<T = unknown>(instanceId: string, event: string | EventDefinition<T>, ...data: InputArguments<T, [options?: SendOptions]>): Promise<SendResult>;
    /** Appends a message to a queue of an instance. */
    enqueueEvent<T = unknown>(instanceId: string, queue: string | EventDefinition<T>, ...data: InputArguments<T, [options?: SendOptions]>): Promise<SendResult>;
    /** The same as `raiseEvent`. */
    raiseEventTyped<T = unknown>(instanceId: string, event: string | EventDefinition<T>, ...data: InputArguments<T, [options?: SendOptions]>): Promise<SendResult>;
    /** The same as `enqueueEvent`. */
    enqueueEventTyped<T = unknown>(instanceId: string, queue: string | EventDefinition<T>, ...data: InputArguments<T, [options?: SendOptions]>): Promise<SendResult>;
}

/** What a message tells. */
export interface SendResult {
    /** False when the instance has ended already, and for a request to cancel one that does not exist. */
    accepted: boolean;
}

/** One start of `startMany`. A definition says what its input must be. */
export interface StartItem extends StartOptions {
    orchestration: string | OrchestrationDefinition<never>;
    input?: unknown;
}

/** What a definition asks of the item that names it. */
export type StartItemInput<T> = T extends {
    orchestration: OrchestrationDefinition<infer I>;
} ? undefined extends I ? {
    input?: I;
} : {
    input: I;
} : unknown;

/** How `start` starts an instance. */
export interface StartOptions {
    /** Id of the instance. Default: a fresh UUID. */
    id?: string;
    /** Exact version. Default: that of the definition, else the newest of the node that runs the first turn. */
    version?: string;
    /** Label of the instance, which `listInstances` can filter by. */
    tag?: string;
    /** The first turn comes not before this many ms from now. */
    delayMs?: number;
    /** The first turn comes not before this time. */
    startAt?: Time;
}

/** What a start tells. */
export interface StartResult {
    /** False when an instance with this id was there before; it goes on undisturbed. */
    created: boolean;
}

/** What became of one start of `startMany`. */
export interface StartedItem {
    id: string;
    /** False when an instance with this id was there before; it goes on undisturbed. */
    created: boolean;
    /** False when that instance was started with another orchestration or input. */
    same: boolean;
}

/** An activity with its types. */
export interface ActivityDefinition<I = unknown, O = unknown> {
    readonly type: 'activity';
    readonly name: string;
    /** Schema of the input, if it was given. */
    readonly input?: StandardSchema | undefined;
    /** Schema of the result, if it was given. */
    readonly output?: StandardSchema | undefined;
    readonly fn: ActivityFunction<I, O>;
}

/** The code of an activity. It runs anywhere, may do anything, and may run more than once. */
export type ActivityFunction<I = unknown, O = unknown> = (ctx: ActivityContext, input: I) => O | PromiseLike<O>;

/** A one-shot event or queue with the type of its data. */
export interface EventDefinition<T = unknown> {
    readonly type: 'event';
    readonly name: string;
    /** Schema of the data, if it was given. */
    readonly schema?: StandardSchema | undefined;
    /** Only a type; never present at run time. */
    readonly data?: T;
}

/** The arguments after a definition: the input may be left out where its type allows undefined. */
export type InputArguments<I, Rest extends unknown[] = []> = undefined extends I ? [input?: I, ...rest: Rest] : [input: I, ...rest: Rest];

/** An orchestration with its types. */
export interface OrchestrationDefinition<I = unknown, O = unknown> {
    readonly type: 'orchestration';
    readonly name: string;
    readonly version: string | undefined;
    /** Schema of the input, if it was given. */
    readonly input?: StandardSchema | undefined;
    /** Schema of the output, if it was given. */
    readonly output?: StandardSchema | undefined;
    readonly fn: OrchestrationFunction<I, O>;
}

/** The code of an orchestration: an async function, or a generator function that yields tasks. It must be deterministic. */
export type OrchestrationFunction<I = unknown, O = unknown> = (ctx: OrchestrationContext, input: I) => PromiseLike<O> | Generator<unknown, O, unknown>;

/**
 * Defines an activity. With the schema `input` a start with another input is refused, and the code gets what the schema
 * makes of it; with `output` so is a result. Neither is tried again.
 *
 * @example
 * const charge = defineActivity('charge', async (ctx, order: Order): Promise<Receipt> => pay(order, ctx.idempotencyKey))
 */
export declare function defineActivity<I = undefined, O = unknown>(name: string, fn: ActivityFunction<I, O>, options?: {
    input?: undefined;
    output?: StandardSchema<O>;
}): ActivityDefinition<I, O>;

export declare function defineActivity<W, I, O = unknown>(name: string, fn: ActivityFunction<I, O>, options: {
    input: StandardSchema<W, I>;
    output?: StandardSchema<O>;
}): ActivityDefinition<W, O>;

/**
 * Defines a one-shot event or a queue by the type of its data, or by a schema, which refuses other data when it is sent.
 *
 * @example
 * const approved = defineEvent<{ by: string }>('approved')
 */
export declare function defineEvent<T = unknown>(name: string, options?: {
    schema?: StandardSchema<T>;
}): EventDefinition<T>;

/**
 * Defines an orchestration. Without a version it is registered as 1.0.0. Its schemas work as those of an activity and must
 * answer at once.
 *
 * @example
 * const checkout = defineOrchestration('checkout', async (ctx, order: Order) => await ctx.scheduleActivity(charge, order))
 */
export declare function defineOrchestration<I = undefined, O = unknown>(name: string, fn: OrchestrationFunction<I, O>, options?: {
    version?: string;
    input?: undefined;
    output?: StandardSchema<O>;
}): OrchestrationDefinition<I, O>;

export declare function defineOrchestration<W, I, O = unknown>(name: string, fn: OrchestrationFunction<I, O>, options: {
    version?: string;
    input: StandardSchema<W, I>;
    output?: StandardSchema<O>;
}): OrchestrationDefinition<W, O>;

/** An error as JSON. */
export interface ErrorPayload {
    /** Class name. */
    name: string;
    /** Text. */
    message: string;
    /** Stack of the place where it was thrown. */
    stack?: string;
    /** Word for machines. */
    code?: string;
    /** Further fields of the error that JSON can hold. */
    data?: Record<string, unknown>;
    /** What led to it. */
    cause?: ErrorPayload;
    /** False: trying again cannot help. */
    retryable?: boolean;
}

/** The error that a payload describes. */
export declare function fromErrorPayload(payload: ErrorPayload): Error;

/** A thrown value as an {@link ErrorPayload}. */
export declare function toErrorPayload(thrown: unknown): ErrorPayload;

/** An activity failed for good. It carries the name, message, code and fields of the activity's own error, which is its `cause`. */
export declare class ActivityFailedError extends HoldfastError {
    /** Name of the activity. */
    readonly activityName: string;
}

/** The work was cancelled. */
export declare class CancelledError extends HoldfastError {
}

/** The database has no connection left to give; `retryAfterMs` says when to come again. */
export declare class CapacityError extends HoldfastError {
}

/** The database was unreachable several times in a row; calls fail at once until a trial succeeds. */
export declare class CircuitOpenError extends HoldfastError {
}

/** The URL leads to a provider's direct port where its pooled one must be used; the message names that port. */
export declare class DirectDatabaseUrlError extends HoldfastError {
}

/** It has none left for the connection that listens beside the pool; see `provider.probeDirectSession()`. */
export declare class DirectSessionCapacityError extends CapacityError {
}

/**
 * Base of every error of this package.
 *
 * @example
 * try { await client.start('checkout', order, { id: 'order-17' }) }
 * catch (error) { if (error instanceof HoldfastError && error.retryable) await later() }
 */
export declare class HoldfastError extends Error {
    /** Stable word for machines, for example `INVALID_PAYLOAD`. */
    readonly code: string;
    /** Whether the same call may succeed later. */
    readonly retryable: boolean;
    /** How long to wait before trying again, in ms, where that is known. */
    readonly retryAfterMs?: number;
    constructor(message: string, options: HoldfastErrorOptions);
}

/** What a {@link HoldfastError} is made from. */
export interface HoldfastErrorOptions {
    /** Stable word for machines. */
    code: string;
    /** Whether the same call may succeed later. Default: false. */
    retryable?: boolean | undefined;
    /** How long to wait before trying again, in ms. */
    retryAfterMs?: number | undefined;
    /** What led to it. */
    cause?: unknown;
}

/** An instance with this id exists and was started with another name or input. */
export declare class InstanceExistsError extends HoldfastError {
}

/** The code of an orchestration does not fit its recorded history. */
export declare class NondeterminismError extends HoldfastError {
}

/** An orchestration failed. It carries the name, message, code and fields of the error that it threw, which is its `cause`. */
export declare class OrchestrationFailedError extends HoldfastError {
    /** Name of the orchestration. */
    readonly orchestrationName: string;
}

/** Too many callers wait for a connection; `retryAfterMs` says when to come again. */
export declare class SaturatedError extends HoldfastError {
}

/** A time limit passed. */
export declare class TimeoutError extends HoldfastError {
}

/** What can be listened to: everything, the levels `warn` and `error`, or the state of the hub for hints of other processes. */
export type EventKind = 'event' | 'warning' | 'hub';

/** How much somebody should care: the engine's state changed, somebody may act, something cannot go on. */
export type EventLevel = 'info' | 'warn' | 'error';

/** Hears events; one that throws, or whose promise rejects, is reported by `process.emitWarning`. */
export type EventListener = (event: HoldfastEvent) => void;

/** Something that happened; docs/events.md lists the names and the fields of each. */
export interface HoldfastEvent {
    /** A stable word in kebab case, for example `lease-lost`. */
    name: string;
    level: EventLevel;
    /** For people. */
    message: string;
    /** When, by the clock of this process. */
    at: Date;
    /** How many this one stands for: above 1 when its kind came faster than it could be told. */
    count: number;
    /** What belongs to this name. */
    [field: string]: unknown;
}

/** What `explain` gives. */
export interface Explanation {
    instanceId: string;
    /** `Parked` where the other calls say `Failed`; `NotFound` for an id that nobody has started, and for a job that has not ended. */
    status: 'NotFound' | 'Pending' | 'Running' | 'Completed' | 'Failed' | 'Cancelled' | 'Parked';
    orchestrationName?: string;
    /** Of a background job: its activity. */
    activityName?: string;
    /** Absent until the first turn has chosen it. */
    orchestrationVersion?: string;
    /** One sentence. */
    summary: string;
    /** At most 100 of each kind. */
    waiting: Waiting[];
    /** Absent when it has ended, or there is no such instance. */
    turn?: TurnState;
    /** Present while it is parked. */
    parked?: Parked;
    /** What keeps it from going on, apart from what it waits for; such as `no live node has activity mail`. */
    problems: string[];
    /** All of it in lines for people; what `toString()` gives. */
    text: string;
    toString(): string;
}

/** How the next turn of an instance stands. */
export interface TurnState {
    /** A node may take it now. */
    due: boolean;
    /** When it is due, if that is known. */
    dueAt?: number;
    /** The node that has it. */
    leasedBy?: string;
    /** Until when that node has it, unless it renews. */
    leaseUntil?: number;
    /** Claims of this turn that were not given back. */
    deliveries: number;
    /** Messages that wait for it, counted up to 1001. */
    messages: number;
}

/** One thing that an instance waits for. Times are ms since 1970, by the database's clock. */
export type Waiting = {
    kind: 'timer';
    /** When it fires. */
    until: number;
} | {
    /** A one-shot event, or the next message of a queue. */
    kind: 'event' | 'queue';
    name: string;
} | {
    kind: 'activity';
    name: string;
    /** The event that scheduled it. */
    event: number;
    /** Try of its retry policy, from 1. */
    attempt: number;
    /** Claims of this try that were not given back; 0 before the first. */
    delivery: number;
    /** While nobody runs it: when it may be taken. */
    nextAt?: number;
    /** While it runs: the node. */
    leasedBy?: string;
    /** While it runs: until when, unless renewed. */
    leaseUntil?: number;
    /** While nobody runs it: the node that died while it held it. */
    lostBy?: string;
    /** What its body told last with `ctx.heartbeat`. */
    heartbeatDetails?: unknown;
    /** When it told that. */
    heartbeatAt?: number;
    tag?: string;
    session?: string;
} | {
    kind: 'child';
    instanceId: string;
    name: string;
    /** Its status, or `Parked` with the code. */
    status: string;
};

/**
 * An instance that was started.
 *
 * @example
 * const handle = await client.start(checkout, order, { id: 'order-17' })
 * const receipt = await handle.result()
 */
export declare class OrchestrationHandle<O = unknown> {
    private constructor();
    #private;
    /** Id of the instance. */
    readonly id: string;
    /**
     * Waits for the end and gives the output. Rejects with OrchestrationFailedError, CancelledError, or, when `timeoutMs` is
     * given and over, TimeoutError. Without it, it waits for as long as it takes. A `signal` that is aborted ends the wait with
     * its reason.
     */
    result(options?: WaitOptions): Promise<O>;
    /** How the instance stands. */
    status(options?: AbortOptions): Promise<OrchestrationStatus>;
    /** Asks the instance to stop. */
    cancel(reason?: string, options?: AbortOptions): Promise<SendResult>;
    /** Raises a one-shot event. */
    raise<T = unknown>(event: string | EventDefinition<T>, ...data: InputArguments<T, [options?: SendOptions]>): Promise<SendResult>;
}

/**
 * The state of a runtime at one moment.
 *
 * @example
 * // Readiness: takes part in the work. Liveness: restart what cannot help itself.
 * server.get('/ready', (_, reply) => reply.code(runtime.health().status === 'healthy' ? 200 : 503).send())
 * server.get('/live', (_, reply) => reply.code(runtime.health().stuckPart === null ? 200 : 503).send())
 */
export interface RuntimeHealth {
    /**
     * `healthy`: all is well. `degraded`: it works, but less than it could, or not for long (a late heartbeat, a database that did
     * not answer, an event loop that stood still, a shutdown in progress). `unhealthy`: it takes no work (not started, stopped,
     * fenced, an event loop that hung, a part of the engine without progress).
     */
    status: 'healthy' | 'degraded' | 'unhealthy';
    state: 'new' | 'starting' | 'started' | 'stopping' | 'stopped';
    /** What is not as it should be, for people; empty when healthy. */
    reasons: string[];
    /** The node's id; null while it is not registered. */
    nodeId: string | null;
    /** Grows when the node was declared dead and registered again. */
    epoch: number | null;
    /** Time since the last successful heartbeat was sent. */
    heartbeatAgeMs: number | null;
    /** Whether the last call on the connection of the heartbeats succeeded. */
    databaseReachable: boolean;
    /** Not heard for too long: nothing is started, because the others may take over soon. */
    fenced: boolean;
    eventLoop: 'healthy' | 'stalled' | 'hung';
    /** A part of the engine that makes no progress. */
    stuckPart: string | null;
    /** `unowned`: after an outage, leases that ran out are left to their owners for a while. */
    claims: 'all' | 'unowned' | 'nothing';
    orchestrationSlots: Slots;
    activitySlots: Slots;
}

/** Places for work of one kind. */
export interface Slots {
    /** In progress. */
    used: number;
    free: number;
}

/** Most keys of an instance's key-value store. */
export declare const MAX_KV_KEYS = 150;

/** Longest value of an instance's key-value store in bytes of UTF-8. */
export declare const MAX_KV_VALUE_BYTES: number;

/** Longest name or instance id in bytes of UTF-8: fits an index entry with room for the other columns of its key. */
export declare const MAX_NAME_BYTES = 512;

/** Longest tag in bytes of UTF-8. */
export declare const MAX_TAG_NAME_BYTES = 256;

/** Most tags of a `workerTagFilter`. */
export declare const MAX_WORKER_TAGS = 5;

/** Which instances a bulk call is about. */
export interface BulkFilter {
    /** Only these. */
    instanceIds?: readonly string[] | undefined;
    /** Only those that ended before this time. */
    completedBefore?: Time | undefined;
    /** Instances at most, not counting their descendants. Default: 1000. */
    limit?: number | undefined;
}

/** What was deleted. */
export interface DeleteResult {
    instancesDeleted: number;
    executionsDeleted: number;
    eventsDeleted: number;
    /** Messages and activities that were waiting. */
    queueMessagesDeleted: number;
}

/** What `listInstances` lists. Filters that are absent keep everything. */
export interface InstanceFilter {
    status?: ListedStatus | undefined;
    /** True: only parked ones. False: none of them. */
    parked?: boolean | undefined;
    /** Code of the error, such as `POISONED` or `NONDETERMINISM`. */
    code?: string | undefined;
    /** The label that `start` gave it. */
    tag?: string | undefined;
    /** Name of the orchestration. */
    name?: string | undefined;
    /** Exact version. */
    version?: string | undefined;
    /** Id of the parent: lists its children. */
    parent?: string | undefined;
    /** How the id begins. */
    idPrefix?: string | undefined;
    /** Made after this time. */
    createdAfter?: Time | undefined;
    /** Made before this time. */
    createdBefore?: Time | undefined;
    /** Instances of one page, 1 to 1000. Default: 100. */
    limit?: number | undefined;
    /** `cursor` of the page before. Absent: the first page. */
    cursor?: string | undefined;
}

/** What `listInstances` gives. */
export interface InstancePage {
    /** Newest first. */
    instances: InstanceSummary[];
    /** Where the next page begins; absent on the last one. */
    cursor?: string;
}

/** What `getInstanceTree` gives. */
export interface InstanceTree {
    /** The id that was asked for. */
    rootId: string;
    /** That id, which comes first, and all its descendants. */
    allIds: string[];
    size: number;
}

/** A status to list by. `Failed` includes `Cancelled` and what is parked; `Pending` waits for its first turn. */
export type ListedStatus = 'Pending' | 'Running' | 'Completed' | 'Failed' | 'Cancelled';

/** What `getOrchestrationStats` gives, for the current execution. */
export interface OrchestrationStats {
    historyEventCount: number;
    historySizeBytes: number;
    /** Queue messages that continue-as-new carried into the execution. */
    queuePendingCount: number;
    kvUserKeyCount: number;
    kvTotalValueBytes: number;
}

/** Which executions pruning keeps; with both options it deletes what neither keeps. */
export interface PruneOptions {
    /** The newest ones, counting the current one. Default: 1; 0 is the same. */
    keepLast?: number | undefined;
    /** Those that ended at this time or later. */
    completedBefore?: Time | undefined;
}

/** What was pruned. */
export interface PruneResult {
    /** Instances looked at. */
    instancesProcessed: number;
    executionsDeleted: number;
    eventsDeleted: number;
}

/** What `getQueueDepths` gives: work that is due and leased by nobody. */
export interface QueueDepths {
    orchestratorQueue: number;
    workerQueue: number;
    /** Always 0: a due timer is a due turn. */
    timerQueue: number;
}

/** Which parked instances `resumeBulk` resumes. */
export interface ResumeFilter extends Omit<InstanceFilter, 'status' | 'parked' | 'limit' | 'cursor'> {
    /** Instances at most, the newest first. Default: 1000. */
    limit?: number | undefined;
}

/** What `resume` tells. */
export interface ResumeResult {
    /** False when the instance was not parked. */
    resumed: boolean;
}

/** What `retryInstance` tells. */
export interface RetryResult {
    /** False when the instance was not poisoned. */
    retried: boolean;
}

/** What `getSystemMetrics` gives. */
export interface SystemMetrics {
    totalInstances: number;
    totalExecutions: number;
    /** Not ended. */
    runningInstances: number;
    completedInstances: number;
    /** Cancelled ones included. */
    failedInstances: number;
    /** Beyond a million, the database's estimate. */
    totalEvents: number;
}

/** A time: ms since 1970, or a Date. */
export type Time = number | Date;

/** Options of `raiseEvent` and `enqueueEvent`, after the data. */
export interface SendOptions extends AbortOptions {
    /**
     * Of messages to one instance with the same key only the first is delivered, and every call for it resolves. Keys are
     * remembered for a day. 1 to 256 bytes. Without one each call is a message of its own, and a lost answer is dealt with
     * inside the call.
     */
    dedupKey?: string;
    /** The same as `dedupKey`. */
    idempotencyKey?: string;
}

/**
 * Which activities a runtime takes: only those without a tag (`'defaultOnly'`), all (`'any'`), none (`'none'`), only those
 * with one of 1 to 5 tags, or those without a tag and those with one of these. `'tags'` and `'defaultAnd'` take their list
 * from `workerTagFilterTags`.
 */
export type WorkerTagFilter = 'defaultOnly' | 'any' | 'none' | 'tags' | 'defaultAnd' | {
    readonly tags: readonly string[];
} | {
    readonly defaultAnd: readonly string[];
};

/** Numbers of one runtime since its start. What is counted is counted once its commit is certain. */
export interface MetricsSnapshot {
    /** Instances that had their first turn here. */
    orchStarts: number;
    orchCompletions: number;
    /** Failed, for whatever reason; cancelled ones included. */
    orchFailures: number;
    /** Of those: by an error of their own code, or cancelled. */
    orchApplicationErrors: number;
    /** Of those: because the engine could not do its part. */
    orchInfrastructureErrors: number;
    /** Of those: because code is missing or does not fit. */
    orchConfigurationErrors: number;
    /** Of those: because their deliveries were used up. */
    orchPoison: number;
    activitySuccess: number;
    /** Tries of activities that failed by their own code. */
    activityAppErrors: number;
    /** Tries that failed because the engine could not do its part. */
    activityInfraErrors: number;
    /** Tries that failed because code is missing or does not fit. */
    activityConfigErrors: number;
    /** Activities whose deliveries were used up. */
    activityPoison: number;
    /** Turns claimed. */
    orchDispatcherItemsFetched: number;
    /** Activities claimed. */
    workerDispatcherItemsFetched: number;
    /** Executions that went on as new. */
    orchContinueAsNew: number;
    /** Children started. */
    suborchestrationCalls: number;
    /** Claims that failed and commits that were refused. */
    providerErrors: number;
    /** Turns that any runtime could have claimed at the last look, each `gaugePollIntervalMs`; null before the first. */
    orchQueueDepth: number | null;
    /** The same of activities. */
    workerQueueDepth: number | null;
}

/** A time in ms, or a text with a unit: `'250ms'`, `'30s'`, `'5m'`, `'1h'`, `'7d'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

/** Options of a provider and its pool. Each is also an environment variable: `HOLDFAST_POOL_MAX_CLIENTS`. */
export interface JsPoolOptions {
    /** Connections at most, 1 to 32; a provider without a started runtime has 2 unless this is given. Default: 8. */
    maxClients?: number;
    /** Callers waiting for a connection at most. Default: 128. */
    maxWaiting?: number;
    /** Longest wait for a connection. Default: 5 s. */
    acquireTimeoutMs?: Duration;
    /** Longest query. Default: 15 s. */
    queryTimeoutMs?: Duration;
    /** An idle connection is closed after this time. Default: 30 s. */
    idleTimeoutMs?: Duration;
    /** Longest connecting. Default: 5 s. */
    connectTimeoutMs?: Duration;
    /** Time between two signs of life on an idle connection. Default: 60 s. */
    keepAliveIntervalMs?: Duration;
    /** Times an operation is tried again after a broken connection. Default: 3. */
    retryAttempts?: number;
    /** First delay of that. Default: 50 ms. */
    retryBaseDelayMs?: Duration;
    /** Longest delay of that. Default: 1 s. */
    retryMaxDelayMs?: Duration;
    /** Failed connections in a row that open the breaker. Default: 5. */
    breakerThreshold?: number;
    /** How long it stays open before a trial. Default: 2 s. */
    breakerOpenMs?: Duration;
    /** Whether a transaction-mode pooler is in between. Default: `'auto'`. */
    pooled?: boolean | 'auto';
    /** URL that leads past the pooler, for migrations, heartbeats and LISTEN; as a variable `HOLDFAST_DIRECT_URL`. Default: derived from the URL. */
    directUrl?: string;
    /** Application name shown in `pg_stat_activity`, 1 to 48 bytes. Default: `'holdfast'`. */
    applicationName?: string;
    /** Whether connecting brings the schema up to this version, or refuses one of another version. Default: `'apply'`. */
    migrate?: 'apply' | 'verify';
}

/** Options of a runtime. Each is also an environment variable: `HOLDFAST_WORKER_CONCURRENCY`. */
export interface JsRuntimeOptions {
    /**
     * Turns in progress at once; 0 runs none here. Beside them runs one that was delivered often before, and a turn whose commit
     * takes long is not counted. Default: twice the cores, at least 4.
     */
    orchestrationConcurrency?: number;
    /** Activities in progress at once; 0 runs none here. Default: four times the cores, at least 8. */
    workerConcurrency?: number;
    /** Shortest time between two empty claims; at least 1 ms. Default: 100 ms. */
    dispatcherPollIntervalMs?: Duration;
    /**
     * Longest sleep when idle, at least 1 ms. Without a listener, work of other processes is looked for every second all the
     * same, unless `dispatcherPollIntervalMs` is longer. Default: 5 s.
     */
    dispatcherLongPollTimeoutMs?: Duration;
    /**
     * Claims name what this runtime has; an item that it has no function for all the same is put back for this long, doubling with
     * each one of its name, and no delivery is spent. Default: 1 s.
     */
    unregisteredBackoffBaseMs?: Duration;
    /** Upper bound of that. Default: 60 s. */
    unregisteredBackoffMaxMs?: Duration;
    /**
     * Which activities this runtime takes, by tag. One whose tag no running runtime takes waits, for ever: race it against a
     * timer where that can happen. Default: `'defaultOnly'`, those without a tag.
     */
    workerTagFilter?: WorkerTagFilter;
    /** The 1 to 5 tags of `workerTagFilter: 'tags'` or `'defaultAnd'`. Default: none. */
    workerTagFilterTags?: readonly string[];
    /**
     * Versions of this package whose histories are replayed here: an instance that a version outside the range wrote to is left to
     * other nodes, and `explain` says so. For deployments in which old and new versions run side by side. Default: up to this version.
     */
    supportedReplayVersions?: ReplayVersionRange;
    /** Lease of a turn; at least 1 ms. Default: 5 s. */
    orchestratorLockTimeoutMs?: Duration;
    /** How long before its end a lease of a turn of 15 s or more is renewed; below that it is renewed at half. Default: 2 s. */
    orchestratorLockRenewalBufferMs?: Duration;
    /** Lease of an activity; at least 1 ms. Default: 30 s. */
    workerLockTimeoutMs?: Duration;
    /** How long before its end a lease of an activity of 15 s or more is renewed; below that it is renewed at half. Default: 5 s. */
    workerLockRenewalBufferMs?: Duration;
    /**
     * How long an activity that begins in the process of its turn may run before it gets a row of its own. Until then it runs under
     * the lease of its turn, which costs the database a fraction of a row, and messages to its instance wait as long at most. At
     * most a quarter of `orchestratorLockTimeoutMs` counts; 0: each gets its row at once. Default: 250 ms.
     */
    activityRowDelayMs?: Duration;
    /** Deliveries of one item before it is poisoned; at least 1. Default: 10. */
    maxAttempts?: number;
    /** Added to the lease of the second delivery, doubling from then on. Default: 1 s. */
    retryBackoffBaseMs?: Duration;
    /** Upper bound of that. Default: 60 s. */
    retryBackoffMaxMs?: Duration;
    /** Lease of a session; at least 1 ms. Default: 30 s. */
    sessionLockTimeoutMs?: Duration;
    /** How long before its end a lease of a session of 15 s or more is renewed; below that it is renewed at half. Default: 5 s. */
    sessionLockRenewalBufferMs?: Duration;
    /**
     * A session without work for this long is given up. It must be longer than the time between two renewals of an activity's
     * lease; unless it is given it is at least twice that. Default: 5 min.
     */
    sessionIdleTimeoutMs?: Duration;
    /** Time between two sweeps of ended sessions; at least 1 ms. Default: 5 min. */
    sessionCleanupIntervalMs?: Duration;
    /** Sessions held here at once; 0 takes none. Default: 10. */
    maxSessionsPerRuntime?: number;
    /** Time between two heartbeats; at least 1 ms. Default: 5 s. */
    heartbeatIntervalMs?: Duration;
    /** Silence after which a node counts as dead; at least four heartbeat intervals. Default: 30 s. */
    staleAfterMs?: Duration;
    /** Stable identity of this node, 1 to 512 bytes. Default: host name and process id. */
    workerNodeId?: string;
    /**
     * How long before others may take over a node whose heartbeats fail starts nothing more and stops its activities; less than
     * `staleAfterMs` minus one interval. Default: two heartbeat intervals.
     */
    selfFenceMarginMs?: Duration;
    /**
     * Which processes have a session that listens for work of others: each, one elected among all (the others poll), or none.
     * Default: `'each'`.
     */
    listener?: 'each' | 'elected' | 'off';
    /** JavaScript that stands still for this long is stalled: nothing new is claimed; 0 turns it off. Default: 5 s. */
    eventLoopStallTimeoutMs?: Duration;
    /** JavaScript that stands still for this long hangs; more than the stall timeout; 0 turns it off. Default: 2 min. */
    eventLoopHangTimeoutMs?: Duration;
    /** What is done then: give up the leases so that others take over, or end the process. Default: `'fence'`. */
    eventLoopHangAction?: 'fence' | 'exit';
    /** Live executions kept between turns; 0 replays every turn. Default: 1000. */
    stickyCacheSize?: number;
    /** Encoded history bytes of live executions kept between turns; 0 replays every turn. Default: 64 MiB. */
    stickyCacheBytes?: number;
    /** Time limit of one try of an activity that sets none itself; at least 1 ms. Default: none. */
    activityTimeoutMs?: Duration;
    /** From the abort signal to giving up on an activity. Default: 10 s. */
    activityCancellationGracePeriodMs?: Duration;
    /** Longest input, output, event or error in bytes; at most 1 000 000 000. Default: 64 MiB. */
    payloadByteLimit?: number;
    /** Most events of one execution before a turn; an execution beyond it fails. Default: 1 000 000. */
    historyEventLimit?: number;
    /** Most bytes of history of one execution before a turn, at most the default; an execution beyond it fails. Default: 256 MiB. */
    historyByteLimit?: number;
    /** Most steps that one turn may ask for; an execution beyond it fails before any is written. Default: 100 000. */
    fanOutLimit?: number;
    /** Most messages of one execution that its code has not read; an execution beyond it fails. Default: 100 000. */
    mailboxLimit?: number;
    /** Instances that ended longer ago than this are deleted with all they have, with their descendants once all have ended; at least 1 ms. Default: none. */
    retentionMs?: Duration;
    /** Messages to an id that does not exist are kept this long, then dropped with a warning event; at least 1 ms. Default: 1 day. */
    unknownInstanceRetentionMs?: Duration;
    /** How a log line looks. The first runtime of a process decides. Default: `'compact'`. */
    logFormat?: LogFormat;
    /** Severity of the lines of orchestrations and activities that are logged. The first runtime of a process decides. Default: `'info'`. */
    logLevel?: LogLevel;
    /** Name of this service, 1 to 256 bytes, shown with each line of orchestrations and activities. Default: `'holdfast'`. */
    serviceName?: string;
    /** Version of this service, 1 to 256 bytes, shown like its name. Default: none. */
    serviceVersion?: string;
    /** Time between two looks at the depths of the queues, for `metricsSnapshot()` and the log; at least 1 ms. Default: 60 s. */
    gaugePollIntervalMs?: Duration;
}

/** The value of an option in force, `null` for none, and where it comes from. */
export interface OptionInForce<T> {
    value: T | null;
    source: OptionSource;
}

/** Where the value of an option comes from. */
export type OptionSource = 'default' | 'environment' | 'argument';

/** Every option with its value in force; times in ms. */
export type OptionsInForce<T> = {
    readonly [K in keyof T]-?: OptionInForce<InMs<T[K]>>;
};

/** The same as {@link JsPoolOptions}. */
export type PoolOptions = JsPoolOptions;

/** A range of versions of this package, both ends included; an end that is left out is the default's. */
export interface ReplayVersionRange {
    /** The oldest, such as `'0.1.0'`. */
    min?: string;
    /** The newest. */
    max?: string;
}

/** The same as {@link JsRuntimeOptions}. */
export type RuntimeOptions = JsRuntimeOptions;

/** A token, and when it ends in ms since 1970, as `@azure/identity` gives it. */
export interface AccessToken {
    token: string;
    expiresOnTimestamp?: number;
}

/** How {@link PostgresProvider.connectWithEntra} gets its tokens. */
export interface EntraOptions {
    /**
     * Gives a token for an audience: at the connect, and again before the last one ends.
     *
     * @example
     * const credential = new DefaultAzureCredential()        // of @azure/identity
     * { getToken: (audience) => credential.getToken(audience) }
     */
    getToken?: (audience: string) => PromiseLike<AccessToken | string | null> | AccessToken | string;
    /** What the token is for. Default: `https://ossrdbms-aad.database.windows.net/.default`. */
    audience?: string;
    /** Longest time between two tokens, in ms; at least 1000. Default: 20 minutes. */
    refreshIntervalMs?: number;
    /** Connections of the pool. Default: that of `maxClients`. */
    maxConnections?: number;
    /** Longest wait for one, in ms. Default: that of `acquireTimeoutMs` of the pool. */
    acquireTimeoutMs?: number;
    /** Encryption, as in a URL. Default: `require`. */
    sslmode?: 'disable' | 'allow' | 'prefer' | 'require' | 'verify-ca' | 'verify-full';
}

/** Numbers of a connection pool at one moment; what is counted is counted since the pool was made. */
export interface PoolStats {
    /** The URL without credentials. */
    url: string;
    /** Connections at most. */
    max: number;
    /** Connections open: in use, being opened, or idle. */
    total: number;
    /** Connections unused. */
    idle: number;
    /** Callers waiting for a connection. */
    waiting: number;
    /** Connections handed out. */
    acquires: number;
    /** Half of the last 512 callers had their connection within this time, in ms. */
    acquireWaitP50Ms: number;
    /** 95 of 100 of them did, in ms. */
    acquireWaitP95Ms: number;
    /** Callers refused with {@link SaturatedError}. */
    saturationRejections: number;
    /** Refusals by a server that has no connection left. */
    capacityRejections: number;
    /** Callers refused with {@link CircuitOpenError}. */
    breakerRejections: number;
    /** Whether the breaker is open. */
    breakerOpen: boolean;
    /** Connections that could not be opened, or were lost in use. */
    connectionErrors: number;
    /** Statements that the server refused. */
    queryErrors: number;
    /** Operations run again after a lost connection. */
    retries: number;
    /** The most connections open at once. */
    peakTotal: number;
    /** The most callers waiting at once. */
    peakWaiting: number;
}

/**
 * A connection to PostgreSQL, shared by clients and runtimes.
 *
 * @example
 * const provider = await PostgresProvider.connect(process.env.DATABASE_URL)
 * const client = new Client(provider)
 * await provider.close()
 */
export declare class PostgresProvider {
    protected constructor();
    #private;
    /** Where the URL came from. */
    readonly source: ProviderSource;
    /** Schema of the tables. */
    readonly schema: string;
    /**
     * Connects and brings the schema `holdfast` up to date. Without a URL it takes `HOLDFAST_DATABASE_URL`, then
     * `DATABASE_URL`, then starts a PostgreSQL of its own (never with `NODE_ENV=production`); `source` says which.
     */
    static connect(url?: string, options?: PoolOptions): Promise<PostgresProvider>;
    /** The same in a schema of another name, which is made when it is missing. */
    static connectWithSchema(url: string | undefined, schema: string, options?: PoolOptions): Promise<PostgresProvider>;
    /**
     * Connects with tokens instead of a password, as Microsoft Entra wants it: `options.getToken` gives one, now and each time
     * before the last one ends. What fetches tokens is yours, such as `@azure/identity`. TLS is required unless `sslmode` says less.
     *
     * @example
     * const credential = new DefaultAzureCredential()
     * const provider = await PostgresProvider.connectWithEntra('app.postgres.database.azure.com', 5432, 'main', 'app@example.org', {
     *   getToken: (audience) => credential.getToken(audience),
     * })
     */
    static connectWithEntra(host: string, port: number, database: string, user: string, options?: EntraOptions): Promise<PostgresProvider>;
    /** The same in a schema of another name. */
    static connectWithSchemaAndEntra(host: string, port: number, database: string, user: string, schema: string, options?: EntraOptions): Promise<PostgresProvider>;
    /**
     * Every option with its value in force and where it comes from; a URL without its password.
     *
     * @example
     * provider.options().maxClients // { value: 8, source: 'default' }
     */
    options(): OptionsInForce<JsPoolOptions>;
    /** Numbers of the pool and of the engine. */
    stats(): ProviderStats;
    /**
     * Hears what happens to this provider, its pool and its runtimes: `'event'` everything, `'warning'` what somebody may
     * have to act on, `'hub'` how the listener for work of other processes stands, at once and at every change. Listening
     * keeps no process alive; a listener that throws is reported by `process.emitWarning` and stops no other.
     * docs/events.md lists the names.
     *
     * @example
     * provider.on('warning', ({ name, message }) => log.warn({ name }, message))
     */
    on(kind: EventKind, listener: EventListener): this;
    /** Ends what {@link PostgresProvider.on} began, for this listener. */
    off(kind: EventKind, listener: EventListener): this;
    /**
     * Makes sure that a connection is open and answers, so that the first real call pays for neither the connecting nor a
     * database that was asleep.
     *
     * @example
     * await provider.warm() // before the server accepts requests
     */
    warm(): Promise<void>;
    /**
     * Proves that the database gives a connection of its own, past a pooler, as listening for work of other processes needs
     * one; it is closed again. Rejects with {@link DirectSessionCapacityError} when the database is full, and with
     * `INVALID_URL` when no way past the pooler is known.
     *
     * @example
     * await provider.probeDirectSession().catch((error) => log.warn(error, 'other processes are heard late'))
     */
    probeDirectSession(): Promise<void>;
    /** Gives up this share of the pool; the last one closes it. Closing twice is closing once. */
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}

/** Where the URL of a provider came from. */
export type ProviderSource = 'argument' | 'HOLDFAST_DATABASE_URL' | 'DATABASE_URL' | 'embedded';

/** What a provider tells about itself. */
export interface ProviderStats {
    /** The connection pool, shared by all providers of this process with the same URL and options. */
    pool: PoolStats;
    /** What this provider's clients and runtimes did, for people and dashboards; names may come and go. */
    counters: Record<string, number>;
}

/**
 * Closes every provider of this process, and every pool and listening connection with them, whoever opened it: for the end
 * of a process or a test suite. Shut runtimes down first. Failures are reported together as an `AggregateError`, after
 * everything was tried.
 *
 * @example
 * after(() => closeAll())
 */
export declare function closeAll(): Promise<void>;

/** How an activity is to be run. */
export interface ActivityOptions {
    /** Activities with the same session id run on the same node while it lives and the session is used; see docs/sessions.md. */
    sessionId?: string;
    /** Routing label: only nodes whose `workerTagFilter` takes it run the activity; see docs/tags.md. */
    tag?: string;
    /** When and how often it is tried again. Default: not at all. */
    retry?: RetryPolicy;
    /** Time limit of one try, in ms, from the start of its body: then its signal, and it fails with {@link TimeoutError}. */
    timeoutMs?: number;
    /** Longest time between two calls of `ctx.heartbeat` within one try, in ms; a second or more. Default: none. */
    heartbeatTimeoutMs?: number;
}

/**
 * What an orchestration is given.
 *
 * @example
 * runtime.registerOrchestration('checkout', async (ctx, order) => {
 *   const receipt = await ctx.scheduleActivity('charge', order)
 *   await ctx.scheduleActivity('mail', receipt)
 *   return receipt
 * })
 */
export declare class OrchestrationContext extends TypedSteps {
    #private;
    /** Id of the instance. */
    readonly instanceId: string;
    /** Number of the execution, from 1; continue-as-new starts the next. */
    readonly executionId: number;
    /** Name of the orchestration. */
    readonly orchestrationName: string;
    /** Exact version that runs. */
    readonly orchestrationVersion: string;
    /** Id of the instance that started this one and waits for it, if any. */
    readonly parentInstanceId: string | undefined;
    /** True while recorded history is replayed: the code has been here before. Never branch on it; it is meant for logging. */
    get isReplaying(): boolean;
    /** True once the instance was asked to cancel: the code has a while to clean up, then it ends as cancelled. */
    get isCancelled(): boolean;
    /** The error that every wait got when the instance was cancelled; undefined before. */
    get cancellation(): CancelledError | undefined;
    /** Runs an activity. */
    scheduleActivity<O = unknown, I = unknown>(activity: string | ActivityDefinition<I, O>, ...rest: InputArguments<I, [options?: ActivityOptions]>): ActivityTask<O>;
    /** Runs an activity of a session; see {@link ActivityOptions.sessionId}. */
    scheduleActivityOnSession<O = unknown, I = unknown>(activity: string | ActivityDefinition<I, O>, input: NoInfer<I>, sessionId: string): ActivityTask<O>;
    /** Runs an activity with a retry policy; see {@link ActivityRetryPolicy} for what its backoff words stand for. */
    scheduleActivityWithRetry<O = unknown, I = unknown>(activity: string | ActivityDefinition<I, O>, input: NoInfer<I>, retry: ActivityRetryPolicy): ActivityTask<O>;
    /** Runs an activity of a session with a retry policy. */
    scheduleActivityWithRetryOnSession<O = unknown, I = unknown>(activity: string | ActivityDefinition<I, O>, input: NoInfer<I>, retry: ActivityRetryPolicy, sessionId: string): ActivityTask<O>;
    /** Waits for a time; gives null. */
    scheduleTimer(delayMs: number): Task<null>;
    /** Waits for a one-shot event; one that was raised earlier and not yet read is taken at once. */
    waitForEvent<T = unknown>(event: string | EventDefinition<T>): Task<T>;
    /** Takes the next message of a queue, first in, first out. */
    dequeueEvent<T = unknown>(queue: string | EventDefinition<T>): Task<T>;
    /** Starts a child and waits for its end; its id is made from this instance's. */
    scheduleSubOrchestration<O = unknown, I = unknown>(orchestration: string | OrchestrationDefinition<I, O>, ...rest: InputArguments<I>): Task<O>;
    /** The same with an id of your own. */
    scheduleSubOrchestrationWithId<O = unknown, I = unknown>(orchestration: string | OrchestrationDefinition<I, O>, instanceId: string, ...rest: InputArguments<I>): Task<O>;
    /** The same with an exact version; none means the newest. */
    scheduleSubOrchestrationVersioned<O = unknown, I = unknown>(orchestration: string | OrchestrationDefinition<I, O>, version: string | null | undefined, ...rest: InputArguments<I>): Task<O>;
    /** The same with an exact version and an id of your own. */
    scheduleSubOrchestrationVersionedWithId<O = unknown, I = unknown>(orchestration: string | OrchestrationDefinition<I, O>, version: string | null | undefined, instanceId: string, ...rest: InputArguments<I>): Task<O>;
    /** Starts an orchestration that nobody waits for; gives null at once. */
    startOrchestration<I = unknown>(orchestration: string | OrchestrationDefinition<I, unknown>, instanceId: string, ...rest: InputArguments<I>): Task<null>;
    /** The same with an exact version; none means the newest. */
    startOrchestrationVersioned<I = unknown>(orchestration: string | OrchestrationDefinition<I, unknown>, version: string | null | undefined, instanceId: string, ...rest: InputArguments<I>): Task<null>;
    /**
     * Runs a function in place, in this process and this turn, and records its result like that of an activity: on replay the
     * result is given and the function does not run. For short things of the same file; the turn is held until it ends, and
     * when the process dies before the turn is committed it runs again. Its name and place must stay the same.
     *
     * @example
     * const token = await ctx.step('make-token', () => randomUUID())
     * const page = await ctx.step('fetch', ({ signal }) => fetch(url, { signal }).then((r) => r.text()), { retry: { maxAttempts: 3 } })
     */
    step<T>(name: string, fn: StepFunction<T>, options?: StepOptions): Task<Awaited<T>>;
    /** Ends this execution and starts the next one with an empty history; code after it does not run. */
    continueAsNew(input?: unknown): Task<never>;
    /** The same with an exact version; none means the newest. */
    continueAsNewVersioned(input: unknown, version: string | null | undefined): Task<never>;
    /** Waits for all parts: `{ ok }` or `{ err }` for each, in argument order. */
    all<const P extends readonly unknown[]>(parts: P): Task<{
        -readonly [K in keyof P]: Settled<ResultOf<P[K]>>;
    }>;
    /** Waits for the first part; the others are cancelled. */
    race<P extends readonly unknown[]>(...parts: P): Task<RaceResult<ResultOf<P[number]>>>;
    /** Sets the text that `getStatus` shows for this instance. An object is refused: give its JSON. */
    setCustomStatus(status: string): void;
    /** Removes the custom status. */
    resetCustomStatus(): void;
    /** The custom status as this execution sees it. */
    getCustomStatus(): string | null;
    /**
     * Keeps a text (of anything else but an object `String(value)`) under a key of this instance. Clients read it with `client.getValue` once
     * the turn is committed; it stays over continue-as-new and after the end. At most 150 keys with 64 KiB each: a call that
     * goes over throws (code `LIMIT_EXCEEDED`) and changes nothing.
     */
    setValue(key: string, value: string): void;
    /** The value under a key, as set so far by this instance; null when there is none. */
    getValue(key: string): string | null;
    /** Drops the value of a key. */
    clearValue(key: string): void;
    /** Drops all values. */
    clearAllValues(): void;
    /** All values by key. */
    getKvAllValues(): Record<string, string>;
    /** All keys, sorted. */
    getKvAllKeys(): string[];
    /** Number of keys. */
    getKvLength(): number;
    /** Drops the values that were set before a time, in ms since 1970; gives their number. The same in every replay. */
    pruneKvValuesUpdatedBefore(cutoffMs: number): number;
    /** Reads a value that another instance keeps; null when there is none. The engine itself answers. */
    getValueFromInstance(instanceId: string, key: string): Task<string | null>;
    /** The time, in ms since 1970: that of the last thing that happened to this execution. May be yielded or awaited, too. */
    utcNow(): number;
    /** A UUID that is the same in every replay. May be yielded or awaited, too. */
    newGuid(): string;
    /** A number from 0 up to 1 that is the same in every replay. Not for secrets. May be yielded or awaited, too. */
    random(): number;
    /** Logs a line, once: not again in replay. */
    traceInfo(message: string): void;
    /** Logs a warning, once. */
    traceWarn(message: string): void;
    /** Logs an error, once. */
    traceError(message: string): void;
    /** Logs a detail, once. */
    traceDebug(message: string): void;
}

/** The result type of a part of `all` or `race`: of a task its result, of a plain value the value. */
export type ResultOf<P> = P extends Task<infer T> ? T : P;

/** What `race` says: which part came first and its value; when it failed, the text of its error and `error: true`. */
export type RaceResult<T> = {
    index: number;
    value: T;
    error?: undefined;
} | {
    index: number;
    value: string;
    error: true;
    readonly reason: Error;
};

/** What `all` says about one part: its value, or the text of its error (with the error itself as `reason`, not enumerable). */
export type Settled<T> = {
    ok: T;
    err?: undefined;
} | {
    err: string;
    readonly reason: Error;
    ok?: undefined;
};

/** What a local step is given. */
export interface StepContext {
    /** Name of the step. */
    readonly name: string;
    /** Which try of its retry policy this is, from 1. */
    readonly attempt: number;
    /** The same for every try and every run of this step: pass it on to what you call. */
    readonly idempotencyKey: string;
    /** Aborted when the result is no longer wanted, its time limit passed, or its instance is being cancelled. */
    readonly signal: AbortSignal;
}

/** The code of a local step. */
export type StepFunction<T> = (step: StepContext) => T | PromiseLike<T>;

/** How a local step is to be run. */
export interface StepOptions {
    /** When and how often it is tried again, in place: the turn is held meanwhile. Default: not at all. */
    retry?: RetryPolicy;
}

/** A task that runs an activity. */
export interface ActivityTask<T = unknown> extends Task<T> {
    /** Routing label, if any. */
    readonly tag: string | undefined;
    /** Sets the routing label and returns this same task. */
    withTag(tag: string): this;
}

/**
 * A step of an orchestration. `yield` it, `yield*` it (which keeps the type), or `await` it.
 *
 * @example
 * const receipt = await ctx.scheduleActivity(charge, order)     // async function
 * const receipt = yield* ctx.scheduleActivity(charge, order)    // generator function
 */
export interface Task<T = unknown> extends PromiseLike<T> {
    /** Lets a generator write `yield* task` and get the result with its type. */
    [Symbol.iterator](): Generator<Task<T>, T, unknown>;
    /** Like `Promise.prototype.catch`. */
    catch<R = never>(onRejected?: ((reason: unknown) => R | PromiseLike<R>) | null): Promise<T | R>;
    /** Like `Promise.prototype.finally`. */
    finally(onFinally?: (() => void) | null): Promise<T>;
}

/**
 * A policy in the form that `scheduleActivityWithRetry` takes: other backoff words count as `linear`, and a try that runs out
 * of `timeoutMs` fails the call at once (`finalTimeout`).
 */
export interface ActivityRetryPolicy extends Omit<RetryPolicy, 'backoff' | 'maxAttempts'> {
    /** Tries in all, the first included. */
    maxAttempts: number;
    /** `exponential` (100 ms, doubling, at most 30 s), `fixed` (1 s), any other word: linear (100 ms × try, at most 30 s). */
    backoff?: string;
}

/**
 * When and how often a failed activity is tried again.
 *
 * @example
 * ctx.scheduleActivity('charge', order, { retry: { maxAttempts: 5, baseDelayMs: 200, nonRetryable: ['CardDeclined'] } })
 */
export interface RetryPolicy {
    /** Tries in all, the first included. Default: 3. */
    maxAttempts?: number;
    /** How the delay grows. Default: `exponential` (doubles); `linear` grows by the base; `fixed` stays. */
    backoff?: 'exponential' | 'linear' | 'fixed';
    /** Delay before the second try, in ms. Default: 1000. */
    baseDelayMs?: number;
    /** Longest delay, in ms. Default: 60000. */
    maxDelayMs?: number;
    /** Share of each delay that is random, 0 to 100. Default: 25. */
    jitterPercent?: number;
    /** Time limit of one try, in ms, from the start of its body. A try that it ends has failed and counts. Default: none. */
    timeoutMs?: number;
    /** Whether a try that runs out of `timeoutMs` fails the activity at once, while its code may still be stopping. Default: false. */
    finalTimeout?: boolean;
    /** Longest time between two calls of `ctx.heartbeat` within one try, in ms; a second or more. Default: none. */
    heartbeatTimeoutMs?: number;
    /**
     * Time limit over all tries and delays, in ms, counted from when the activity may start first. It cuts the try that is under
     * way, and a try that could only start after it does not start. Default: none.
     */
    totalTimeoutMs?: number;
    /** Names of errors that are not tried again. Default: none. */
    nonRetryable?: readonly string[];
}

/**
 * Runs orchestrations and activities.
 *
 * @example
 * const runtime = new Runtime(provider, { orchestrationConcurrency: 64 })
 * runtime.registerActivity('charge', async (ctx, order) => charge(order))
 * runtime.registerOrchestration('checkout', async (ctx, order) => await ctx.scheduleActivity('charge', order))
 * await runtime.start()
 */
export declare class Runtime {
    #private;
    /** `dispatcherPollInterval` is another name of `dispatcherPollIntervalMs`. */
    constructor(provider: PostgresProvider, options?: RuntimeOptions & {
        dispatcherPollInterval?: Duration;
    });
    /**
     * Every option with its value in force and where it comes from.
     *
     * @example
     * runtime.options().maxAttempts // { value: 10, source: 'default' }
     */
    options(): OptionsInForce<JsRuntimeOptions>;
    /** Registers an activity. Of two functions under one name the first one stays, with a warning of the process. */
    registerActivity(activity: ActivityDefinition<never>): void;
    registerActivity<I, O>(activity: ActivityDefinition<I, O>, fn?: ActivityFunction<I, O>): void;
    registerActivity<I = unknown, O = unknown>(name: string, fn: ActivityFunction<I, O>): void;
    /** Registers an orchestration; without a version it is 1.0.0. */
    registerOrchestration(orchestration: OrchestrationDefinition<never>): void;
    registerOrchestration<I, O>(orchestration: OrchestrationDefinition<I, O>, fn?: OrchestrationFunction<I, O>): void;
    registerOrchestration<I = unknown, O = unknown>(name: string, fn: OrchestrationFunction<I, O>): void;
    /** Registers one version of an orchestration. */
    registerOrchestrationVersioned<I, O>(orchestration: OrchestrationDefinition<I, O>, version: string, fn?: OrchestrationFunction<I, O>): void;
    registerOrchestrationVersioned<I = unknown, O = unknown>(name: string, version: string, fn: OrchestrationFunction<I, O>): void;
    /** The same as `registerActivity`. */
    registerActivityTyped<I, O>(activity: ActivityDefinition<I, O>, fn?: ActivityFunction<I, O>): void;
    registerActivityTyped<I = unknown, O = unknown>(name: string, fn: ActivityFunction<I, O>): void;
    /** The same as `registerOrchestration`. */
    registerOrchestrationTyped<I, O>(orchestration: OrchestrationDefinition<I, O>, fn?: OrchestrationFunction<I, O>): void;
    registerOrchestrationTyped<I = unknown, O = unknown>(name: string, fn: OrchestrationFunction<I, O>): void;
    /** The same as `registerOrchestrationVersioned`. */
    registerOrchestrationVersionedTyped<I, O>(orchestration: OrchestrationDefinition<I, O>, version: string, fn?: OrchestrationFunction<I, O>): void;
    registerOrchestrationVersionedTyped<I = unknown, O = unknown>(name: string, version: string, fn: OrchestrationFunction<I, O>): void;
    /** Starts to take work. A runtime starts once. */
    start(): Promise<void>;
    /**
     * Stops: takes nothing new, hands back what was not begun, waits up to `timeoutMs` (default: 1000) for what runs, then
     * tells it to stop. Calling it again gives the same promise; a bad `timeoutMs` rejects and stops nothing.
     */
    shutdown(timeoutMs?: number): Promise<void>;
    /**
     * What this runtime did since its start; null before the start and after a shutdown.
     *
     * @example
     * console.log(runtime.metricsSnapshot()?.orchCompletions)
     */
    metricsSnapshot(): MetricsSnapshot | null;
    /**
     * Shuts down at one of these signals, as {@link shutdown} does; another one while it does ends the waiting for what runs. The
     * listeners go with the shutdown, or when the returned function is called. The process then ends as soon as nothing else
     * keeps it.
     *
     * @example
     * runtime.shutdownOn(['SIGTERM', 'SIGINT'], { timeoutMs: 25_000 })
     */
    shutdownOn(signals: readonly NodeJS.Signals[], options?: {
        timeoutMs?: number;
    }): () => void;
    /** How this runtime does at this moment, for probes. Never waits and never throws. */
    health(): RuntimeHealth;
    [Symbol.asyncDispose](): Promise<void>;
}

/** One fault of a value. */
export interface StandardIssue {
    readonly message: string;
    readonly path?: readonly (PropertyKey | {
        readonly key: PropertyKey;
    })[] | undefined;
}

/** What a schema says about a value. */
export type StandardResult<T> = {
    readonly value: T;
    readonly issues?: undefined;
} | {
    readonly issues: readonly StandardIssue[];
};

/** The Standard Schema interface, version 1: `I` is what may be given, `O` what the schema makes of it. */
export interface StandardSchema<I = unknown, O = I> {
    readonly '~standard': {
        readonly version: 1;
        readonly vendor: string;
        readonly validate: (value: unknown) => StandardResult<O> | Promise<StandardResult<O>>;
        readonly types?: {
            readonly input: I;
            readonly output: O;
        } | undefined;
    };
}

/**
 * A database of development and tests under a file name or in memory, kept by the embedded PostgreSQL. For programs that
 * were written for SQLite; it needs the same server binaries as `PostgresProvider.connect()` without a URL and is not
 * there with `NODE_ENV=production`.
 *
 * @example
 * const provider = await SqliteProvider.inMemory()
 * const client = new Client(provider)
 * await provider.close()
 */
export declare class SqliteProvider extends PostgresProvider {
    /**
     * The database of a path or `sqlite:` URL. The file, made with its folders when it is missing, holds only the name of the
     * schema with the data; without the file the next `open` gives an empty database.
     */
    static open(location: string): Promise<SqliteProvider>;
    /** An empty database of its own, gone when the provider is closed or the process ends. */
    static inMemory(): Promise<SqliteProvider>;
}

/** What `getExecutionInfo` gives. */
export interface ExecutionInfo {
    executionId: number;
    status: InstanceInfo['status'] | 'ContinuedAsNew';
    /** Parsed output, when completed; the input of the next execution, when continued as new. */
    output?: unknown;
    /** Ms since 1970. */
    startedAt: number;
    /** Ms since 1970; absent while it runs. */
    completedAt?: number;
    eventCount: number;
}

/** An event of an execution's history. */
export interface HistoryEvent {
    /** Position, from 1. */
    eventId: number;
    /** What happened. */
    kind: string;
    /** The event that asked for what this one answers. */
    sourceEventId?: number;
    /** Ms since 1970. */
    timestampMs: number;
    /** JSON text; its shape depends on the kind. */
    data?: string;
}

/** What `getInstanceInfo` gives. */
export interface InstanceInfo {
    instanceId: string;
    orchestrationName: string;
    orchestrationVersion: string;
    currentExecutionId: number;
    status: StatusWord | 'Pending';
    /** Parsed output, when completed. */
    output?: unknown;
    /** Ms since 1970. */
    createdAt: number;
    /** Ms since 1970. */
    updatedAt: number;
    parentInstanceId?: string;
    /** The label that `start` gave it. */
    tag?: string;
    /** Present while the instance is parked: stopped without an end, to be continued by `resume`. */
    parked?: Parked;
}

/** What `listInstances` gives of each. */
export interface InstanceSummary extends Omit<InstanceInfo, 'output' | 'parked'> {
    /** Code of the error of a failed or parked instance, if it has one. */
    errorCode?: string;
    /** Present while it is parked. */
    parked?: Omit<Parked, 'reason'>;
}

/** What `waitForOrchestration` gives: the output is parsed. */
export interface OrchestrationResult<O = unknown> extends Omit<OrchestrationStatus, 'output'> {
    output?: O;
}

/** What `getStatus` gives. */
export interface OrchestrationStatus {
    status: StatusWord;
    /** JSON text of the output, when completed. */
    output?: string;
    /** Text of the error, when failed. */
    error?: string;
    /** The custom status, if one is set. */
    customStatus?: string;
    /** Grows with every change of the custom status. */
    customStatusVersion: number;
    /** Present beside `NotFound` when the start was accepted and the first turn is still to come; absent for an unknown id. */
    isPending?: true;
}

/** Why an instance is parked. */
export interface Parked {
    /** What is wrong, for people: the text of `getStatus().error`. */
    reason: string;
    /** What is wrong, for programs: `NONDETERMINISM`, `FOREIGN_WAIT`, `CORRUPT`, … */
    code: string;
    /** Ms since 1970. */
    since: number;
}

/** How an instance stands. `NotFound` also before its first turn: `isPending` tells it from an unknown id. */
export type StatusWord = 'NotFound' | 'Running' | 'Completed' | 'Failed';

/** How a line looks: one line of text, several of them, or one JSON object. */
export type LogFormat = 'compact' | 'pretty' | 'json';

/** Which lines are logged: those of this severity and worse. */
export type LogLevel = TraceLevel | 'trace' | 'off';

/** Where the log of the process goes. */
export interface TracingOptions {
    /** File to whose end the lines are written; made when it is missing. */
    logFile: string;
    /** Severity of the lines of orchestrations and activities; of everything else only warnings are logged. Default: `info`. */
    logLevel?: LogLevel;
    /** Default: `compact`. */
    logFormat?: LogFormat;
}

/**
 * Sends the log of this process to a file: the lines of orchestrations and activities from `logLevel` on, and the engine's
 * warnings. `RUST_LOG` replaces both, for example `RUST_LOG=holdfast_core=debug`. Once for each process and before the first
 * `runtime.start()`, which sends it to stderr otherwise.
 *
 * @example
 * initTracing({ logFile: 'worker.log', logFormat: 'json' })
 */
export declare function initTracing(options: TracingOptions): void;

/** Queues standalone activities; every {@link Client} can do this. */
declare abstract class ActivityQueue extends Management {
    #private;
    /**
     * Queues an activity with no orchestration around it: a background job. It runs on any runtime that has the activity, at
     * least once; its result is recorded once. When this resolves, it is stored.
     *
     * An id that is taken gives the handle of the task that is there; with another name or input it rejects with
     * {@link InstanceExistsError}.
     *
     * @example
     * await client.enqueueActivity('mail', { to: 'ann@example.org' }, { id: 'welcome-ann', delayMs: 60_000, retry: { maxAttempts: 5 } })
     */
    enqueueActivity<O = unknown, I = unknown>(activity: string | ActivityDefinition<I, O>, ...rest: InputArguments<I, [options?: EnqueueOptions & AbortOptions]>): Promise<ActivityHandle<O>>;
    /**
     * Queues many activities: thousands with one commit. Nothing is kept of those that succeed unless they say so with
     * `retention`. Stored in pieces of 1000, each whole or not at all; when it rejects half way, the same call with the same ids
     * does the rest.
     *
     * @example
     * await client.enqueueActivities(users.map((user) => ({ activity: 'mail', input: user, id: `news-7-${user.id}` })))
     */
    enqueueActivities<const T extends readonly EnqueueItem[]>(items: T & {
        readonly [K in keyof T]: T[K] & EnqueueItemInput<T[K]>;
    }, options?: AbortOptions): Promise<{
        -readonly [K in keyof T]: ActivityHandle<EnqueueItemOutput<T[K]>>;
    }>;
    /** The handle of a standalone activity, without asking whether it exists. */
    activityHandle<O = unknown>(id: string): ActivityHandle<O>;
    /** How a standalone activity stands; `NotFound` when nothing is stored about it. */
    getActivity<O = unknown>(id: string, options?: AbortOptions): Promise<ActivityInfo<O>>;
    /**
     * Lists standalone activities by id, a page at a time: waiting, running and ended ones, as far as they are stored.
     *
     * @example
     * const dead = await client.listActivities({ status: 'Failed', name: 'mail' })
     * for (const { id } of dead.activities) await client.retryActivity(id)
     */
    listActivities(filter?: ActivityFilter, options?: AbortOptions): Promise<ActivityPage>;
    /** Stops a standalone activity that has not ended; `cancelled` is false when there is none. See {@link ActivityHandle.cancel}. */
    cancelActivity(id: string, reason?: string, options?: AbortOptions): Promise<{
        cancelled: boolean;
    }>;
    /**
     * Queues a failed, poisoned or cancelled standalone activity anew: due now, with all its tries. `retried` is false when there
     * is none of this id.
     */
    retryActivity(id: string, options?: AbortOptions): Promise<{
        retried: boolean;
    }>;
    /**
     * Forgets a standalone activity that has ended; its id is free then. `deleted` is false when nothing is stored about it.
     * Rejects with code `STILL_RUNNING` when it has not ended.
     */
    deleteActivity(id: string, options?: AbortOptions): Promise<{
        deleted: boolean;
    }>;
}

/** A time as a number of ms. */
type InMs<V> = Duration extends V ? number : Exclude<V, undefined>;

/** The calls that have a typed sister. */
declare abstract class TypedSteps {
    protected constructor();
    abstract scheduleActivity<O = unknown, I = unknown>(activity: string | ActivityDefinition<I, O>, ...rest: InputArguments<I, [options?: ActivityOptions]>): ActivityTask<O>;
    abstract scheduleActivityOnSession<O = unknown, I = unknown>(activity: string | ActivityDefinition<I, O>, input: NoInfer<I>, sessionId: string): ActivityTask<O>;
    abstract scheduleActivityWithRetry<O = unknown, I = unknown>(activity: string | ActivityDefinition<I, O>, input: NoInfer<I>, retry: ActivityRetryPolicy): ActivityTask<O>;
    abstract scheduleActivityWithRetryOnSession<O = unknown, I = unknown>(activity: string | ActivityDefinition<I, O>, input: NoInfer<I>, retry: ActivityRetryPolicy, sessionId: string): ActivityTask<O>;
    abstract scheduleSubOrchestration<O = unknown, I = unknown>(orchestration: string | OrchestrationDefinition<I, O>, ...rest: InputArguments<I>): Task<O>;
    abstract scheduleSubOrchestrationWithId<O = unknown, I = unknown>(orchestration: string | OrchestrationDefinition<I, O>, instanceId: string, ...rest: InputArguments<I>): Task<O>;
    abstract scheduleSubOrchestrationVersioned<O = unknown, I = unknown>(orchestration: string | OrchestrationDefinition<I, O>, version: string | null | undefined, ...rest: InputArguments<I>): Task<O>;
    abstract scheduleSubOrchestrationVersionedWithId<O = unknown, I = unknown>(orchestration: string | OrchestrationDefinition<I, O>, version: string | null | undefined, instanceId: string, ...rest: InputArguments<I>): Task<O>;
    abstract startOrchestration<I = unknown>(orchestration: string | OrchestrationDefinition<I, unknown>, instanceId: string, ...rest: InputArguments<I>): Task<null>;
    abstract startOrchestrationVersioned<I = unknown>(orchestration: string | OrchestrationDefinition<I, unknown>, version: string | null | undefined, instanceId: string, ...rest: InputArguments<I>): Task<null>;
    abstract waitForEvent<T = unknown>(event: string | EventDefinition<T>): Task<T>;
    abstract dequeueEvent<T = unknown>(queue: string | EventDefinition<T>): Task<T>;
    abstract continueAsNew(input?: unknown): Task<never>;
    abstract continueAsNewVersioned(input: unknown, version: string | null | undefined): Task<never>;
    abstract all<const P extends readonly unknown[]>(parts: P): Task<{
        -readonly [K in keyof P]: Settled<ResultOf<P[K]>>;
    }>;
    abstract race<P extends readonly unknown[]>(...parts: P): Task<RaceResult<ResultOf<P[number]>>>;
    /** The same as `scheduleActivity`; a result that is a text is read as JSON once more. */
    scheduleActivityTyped<O = unknown, I = unknown>(activity: string | ActivityDefinition<I, O>, ...rest: InputArguments<I, [options?: ActivityOptions]>): ActivityTask<O>;
    /** The same as `scheduleActivityOnSession`; a result that is a text is read as JSON once more. */
    scheduleActivityOnSessionTyped<O = unknown, I = unknown>(activity: string | ActivityDefinition<I, O>, input: NoInfer<I>, sessionId: string): ActivityTask<O>;
    /** The same as `scheduleActivityWithRetry`; a result that is a text is read as JSON once more. */
    scheduleActivityWithRetryTyped<O = unknown, I = unknown>(activity: string | ActivityDefinition<I, O>, input: NoInfer<I>, retry: ActivityRetryPolicy): ActivityTask<O>;
    /** The same as `scheduleActivityWithRetryOnSession`; a result that is a text is read as JSON once more. */
    scheduleActivityWithRetryOnSessionTyped<O = unknown, I = unknown>(activity: string | ActivityDefinition<I, O>, input: NoInfer<I>, retry: ActivityRetryPolicy, sessionId: string): ActivityTask<O>;
    /** The same as `scheduleSubOrchestration`; a result that is a text is read as JSON once more. */
    scheduleSubOrchestrationTyped<O = unknown, I = unknown>(orchestration: string | OrchestrationDefinition<I, O>, ...rest: InputArguments<I>): Task<O>;
    /** The same as `scheduleSubOrchestrationWithId`; a result that is a text is read as JSON once more. */
    scheduleSubOrchestrationWithIdTyped<O = unknown, I = unknown>(orchestration: string | OrchestrationDefinition<I, O>, instanceId: string, ...rest: InputArguments<I>): Task<O>;
    /** The same as `scheduleSubOrchestrationVersioned`; a result that is a text is read as JSON once more. */
    scheduleSubOrchestrationVersionedTyped<O = unknown, I = unknown>(orchestration: string | OrchestrationDefinition<I, O>, version: string | null | undefined, ...rest: InputArguments<I>): Task<O>;
    /** The same as `scheduleSubOrchestrationVersionedWithId`; a result that is a text is read as JSON once more. */
    scheduleSubOrchestrationVersionedWithIdTyped<O = unknown, I = unknown>(orchestration: string | OrchestrationDefinition<I, O>, version: string | null | undefined, instanceId: string, ...rest: InputArguments<I>): Task<O>;
    /** The same as `startOrchestration`. */
    startOrchestrationTyped<I = unknown>(orchestration: string | OrchestrationDefinition<I, unknown>, instanceId: string, ...rest: InputArguments<I>): Task<null>;
    /** The same as `startOrchestrationVersioned`. */
    startOrchestrationVersionedTyped<I = unknown>(orchestration: string | OrchestrationDefinition<I, unknown>, version: string | null | undefined, instanceId: string, ...rest: InputArguments<I>): Task<null>;
    /** The same as `waitForEvent`. */
    waitForEventTyped<T = unknown>(event: string | EventDefinition<T>): Task<T>;
    /** The same as `dequeueEvent`. */
    dequeueEventTyped<T = unknown>(queue: string | EventDefinition<T>): Task<T>;
    /** The same as `continueAsNew`. */
    continueAsNewTyped(input?: unknown): Task<never>;
    /** The same as `continueAsNewVersioned`. */
    continueAsNewVersionedTyped(input: unknown, version: string | null | undefined): Task<never>;
    /** The same as `all`; each `ok` or `err` that is a text is read as JSON once more. */
    allTyped<const P extends readonly unknown[]>(parts: P): Task<{
        -readonly [K in keyof P]: Settled<ResultOf<P[K]>>;
    }>;
    /** The same as `race`; a value that is a text is read as JSON once more. */
    raceTyped<P extends readonly unknown[]>(...parts: P): Task<RaceResult<ResultOf<P[number]>>>;
}

/** Severity of a log line. */
type TraceLevel = 'error' | 'warn' | 'info' | 'debug';

/** Looks at instances and tidies them up; every {@link Client} can do this. */
declare abstract class Management {
    protected constructor();
    #private;
    /** How an instance stands, the output as JSON text. */
    getStatus(instanceId: string, options?: AbortOptions): Promise<OrchestrationStatus>;
    /** The same as `getStatus`. */
    getOrchestrationStatus(instanceId: string, options?: AbortOptions): Promise<OrchestrationStatus>;
    /**
     * Waits until the version of the custom status is higher than `lastSeenVersion`, or the instance has ended. Rejects with
     * {@link TimeoutError} when the time is over.
     *
     * @example
     * let seen = 0
     * for (;;) {
     *   const { status, customStatus, customStatusVersion } = await client.waitForStatusChange('order-17', seen)
     *   if (status !== 'Running') break
     *   console.log(customStatus)
     *   seen = customStatusVersion
     * }
     */
    waitForStatusChange<O = unknown>(instanceId: string, lastSeenVersion: number, pollIntervalMs?: number, timeout?: number | WaitOptions, options?: AbortOptions): Promise<OrchestrationResult<O>>;
    /** What is known about an instance; rejects when there is none. */
    getInstanceInfo(instanceId: string, options?: AbortOptions): Promise<InstanceInfo>;
    /** What is known about one execution of an instance; rejects when there is none. */
    getExecutionInfo(instanceId: string, executionId: number, options?: AbortOptions): Promise<ExecutionInfo>;
    /** Numbers of the executions of an instance, ascending; the first is 1 unless it was pruned. */
    listExecutions(instanceId: string, options?: AbortOptions): Promise<number[]>;
    /** The recorded events of an execution, in order. */
    readExecutionHistory(instanceId: string, executionId: number, options?: AbortOptions): Promise<HistoryEvent[]>;
    /** Ids of all instances, newest first. For many of them take `listInstances`. */
    listAllInstances(options?: AbortOptions): Promise<string[]>;
    /** Ids of the instances with a status, newest first; cancelled ones count as `Failed`. */
    listInstancesByStatus(status: string, options?: AbortOptions): Promise<string[]>;
    /**
     * One page of the instances that pass a filter, newest first.
     *
     * @example
     * let cursor: string | undefined
     * do {
     *   const page = await client.listInstances({ status: 'Failed', name: 'checkout', limit: 50, cursor })
     *   for (const { instanceId } of page.instances) console.log(instanceId)
     *   cursor = page.cursor
     * } while (cursor !== undefined)
     */
    listInstances(filter?: InstanceFilter, options?: AbortOptions): Promise<InstancePage>;
    /**
     * Why an instance is not running, from the engine itself: what it waits for, who has it, what is wrong. Works for every id,
     * also for one that nobody knows.
     *
     * @example
     * console.log(String(await client.explain('order-17')))
     */
    explain(instanceId: string, options?: AbortOptions): Promise<Explanation>;
    /**
     * Continues a parked instance where it stands, after a deploy of code that fits its history. One that still does not fit is
     * parked again. Rejects when there is no such instance.
     *
     * @example
     * for (const { instanceId } of (await client.listInstances({ parked: true })).instances) await client.resume(instanceId)
     */
    resume(instanceId: string, options?: AbortOptions): Promise<ResumeResult>;
    /** Continues all parked instances that pass a filter, and tells how many these are. */
    resumeBulk(filter?: ResumeFilter, options?: AbortOptions): Promise<{
        resumed: number;
    }>;
    /**
     * Runs a poisoned instance again where it stood, with deliveries anew: steps that have a result do not run again, messages
     * that waited are still there. It is recorded in the history as `OrchestrationRetried`. A parent that was told of the end is
     * not told again. Rejects when there is no such instance.
     *
     * @example
     * const { instances } = await client.listInstances({ code: 'POISONED' })
     * for (const { instanceId } of instances) await client.retryInstance(instanceId)
     */
    retryInstance(instanceId: string, options?: AbortOptions): Promise<RetryResult>;
    /** An instance with all its descendants; rejects when there is none. */
    getInstanceTree(instanceId: string, options?: AbortOptions): Promise<InstanceTree>;
    /**
     * Deletes an instance with all its descendants, or nothing. A child cannot be deleted alone. An instance that runs, or has
     * a descendant that runs, is deleted with `force` only: its activities are told to stop, and what they still do is ignored.
     */
    deleteInstance(instanceId: string, force?: boolean | {
        force?: boolean;
    }, options?: AbortOptions): Promise<DeleteResult>;
    /** Deletes instances that have ended, oldest first, with their descendants; running ones and children are passed over. */
    deleteInstanceBulk(filter?: BulkFilter, options?: AbortOptions): Promise<DeleteResult>;
    /** Deletes old executions of an instance that continued as new; never the current one. */
    pruneExecutions(instanceId: string, options?: PruneOptions & AbortOptions): Promise<PruneResult>;
    /** The same for many instances, running ones included; children are passed over. */
    pruneExecutionsBulk(filter?: BulkFilter, options?: PruneOptions & AbortOptions): Promise<PruneResult>;
    /** Counts of everything. It reads all instances: for dashboards, not for every request. */
    getSystemMetrics(options?: AbortOptions): Promise<SystemMetrics>;
    /** How much work waits that a runtime could take now. */
    getQueueDepths(options?: AbortOptions): Promise<QueueDepths>;
    /** Size of the current execution of an instance; null when there is none. */
    getOrchestrationStats(instanceId: string, options?: AbortOptions): Promise<OrchestrationStats | null>;
    /** The value that an instance keeps under a key, also after its end; null when there is none. */
    getValue(instanceId: string, key: string, options?: AbortOptions): Promise<string | null>;
    /** All values that an instance keeps, by key. */
    getKvAllValues(instanceId: string, options?: AbortOptions): Promise<Record<string, string>>;
    /**
     * Waits until an instance keeps a value under a key, and gives it. Rejects with {@link TimeoutError} when the time is over: 30 s
     * by default.
     *
     * @example
     * const url = await client.waitForValue('order-17', 'payment-url')
     */
    waitForValue(instanceId: string, key: string, timeout?: number | WaitOptions, options?: AbortOptions): Promise<string>;
}

export {}
