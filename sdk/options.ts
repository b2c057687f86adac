/**
 * Options: which there are and what they mean. `docs/options.md` is written from the comments here; defaults and rules are the
 * engine's, `option-check.ts` reads and checks what is given.
 */
import type { LogFormat, LogLevel } from './trace.js'
import type { WorkerTagFilter } from './tag-filter.js'

/** A time in ms, or a text with a unit: `'250ms'`, `'30s'`, `'5m'`, `'1h'`, `'7d'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

/** A range of versions of this package, both ends included; an end that is left out is the default's. */
export interface ReplayVersionRange {
  /** The oldest, such as `'0.1.0'`. */
  min?: string
  /** The newest. */
  max?: string
}

/** Options of a runtime. Each is also an environment variable: `HOLDFAST_WORKER_CONCURRENCY`. */
export interface JsRuntimeOptions {
  /**
   * Turns in progress at once; 0 runs none here. Beside them runs one that was delivered often before, and a turn whose commit
   * takes long is not counted. Default: twice the cores, at least 4.
   */
  orchestrationConcurrency?: number
  /** Activities in progress at once; 0 runs none here. Default: four times the cores, at least 8. */
  workerConcurrency?: number
  /** Shortest time between two empty claims; at least 1 ms. Default: 100 ms. */
  dispatcherPollIntervalMs?: Duration
  /**
   * Longest sleep when idle, at least 1 ms. Without a listener, work of other processes is looked for every second all the
   * same, unless `dispatcherPollIntervalMs` is longer. Default: 5 s.
   */
  dispatcherLongPollTimeoutMs?: Duration
  /**
   * Claims name what this runtime has; an item that it has no function for all the same is put back for this long, doubling with
   * each one of its name, and no delivery is spent. Default: 1 s.
   */
  unregisteredBackoffBaseMs?: Duration
  /** Upper bound of that. Default: 60 s. */
  unregisteredBackoffMaxMs?: Duration
  /**
   * Which activities this runtime takes, by tag. One whose tag no running runtime takes waits, for ever: race it against a
   * timer where that can happen. Default: `'defaultOnly'`, those without a tag.
   */
  workerTagFilter?: WorkerTagFilter
  /** The 1 to 5 tags of `workerTagFilter: 'tags'` or `'defaultAnd'`. Default: none. */
  workerTagFilterTags?: readonly string[]
  /**
   * Versions of this package whose histories are replayed here: an instance that a version outside the range wrote to is left to
   * other nodes, and `explain` says so. For deployments in which old and new versions run side by side. Default: up to this version.
   */
  supportedReplayVersions?: ReplayVersionRange
  /** Lease of a turn; at least 1 ms. Default: 5 s. */
  orchestratorLockTimeoutMs?: Duration
  /** How long before its end a lease of a turn of 15 s or more is renewed; below that it is renewed at half. Default: 2 s. */
  orchestratorLockRenewalBufferMs?: Duration
  /** Lease of an activity; at least 1 ms. Default: 30 s. */
  workerLockTimeoutMs?: Duration
  /** How long before its end a lease of an activity of 15 s or more is renewed; below that it is renewed at half. Default: 5 s. */
  workerLockRenewalBufferMs?: Duration
  /**
   * How long an activity that begins in the process of its turn may run before it gets a row of its own. Until then it runs under
   * the lease of its turn, which costs the database a fraction of a row, and messages to its instance wait as long at most. At
   * most a quarter of `orchestratorLockTimeoutMs` counts; 0: each gets its row at once. Default: 250 ms.
   */
  activityRowDelayMs?: Duration
  /** Deliveries of one item before it is poisoned; at least 1. Default: 10. */
  maxAttempts?: number
  /** Added to the lease of the second delivery, doubling from then on. Default: 1 s. */
  retryBackoffBaseMs?: Duration
  /** Upper bound of that. Default: 60 s. */
  retryBackoffMaxMs?: Duration
  /** Lease of a session; at least 1 ms. Default: 30 s. */
  sessionLockTimeoutMs?: Duration
  /** How long before its end a lease of a session of 15 s or more is renewed; below that it is renewed at half. Default: 5 s. */
  sessionLockRenewalBufferMs?: Duration
  /**
   * A session without work for this long is given up. It must be longer than the time between two renewals of an activity's
   * lease; unless it is given it is at least twice that. Default: 5 min.
   */
  sessionIdleTimeoutMs?: Duration
  /** Time between two sweeps of ended sessions; at least 1 ms. Default: 5 min. */
  sessionCleanupIntervalMs?: Duration
  /** Sessions held here at once; 0 takes none. Default: 10. */
  maxSessionsPerRuntime?: number
  /** Time between two heartbeats; at least 1 ms. Default: 5 s. */
  heartbeatIntervalMs?: Duration
  /** Silence after which a node counts as dead; at least four heartbeat intervals. Default: 30 s. */
  staleAfterMs?: Duration
  /** Stable identity of this node, 1 to 512 bytes. Default: host name and process id. */
  workerNodeId?: string
  /**
   * How long before others may take over a node whose heartbeats fail starts nothing more and stops its activities; less than
   * `staleAfterMs` minus one interval. Default: two heartbeat intervals.
   */
  selfFenceMarginMs?: Duration
  /**
   * Which processes have a session that listens for work of others: each, one elected among all (the others poll), or none.
   * Default: `'each'`.
   */
  listener?: 'each' | 'elected' | 'off'
  /** JavaScript that stands still for this long is stalled: nothing new is claimed; 0 turns it off. Default: 5 s. */
  eventLoopStallTimeoutMs?: Duration
  /** JavaScript that stands still for this long hangs; more than the stall timeout; 0 turns it off. Default: 2 min. */
  eventLoopHangTimeoutMs?: Duration
  /** What is done then: give up the leases so that others take over, or end the process. Default: `'fence'`. */
  eventLoopHangAction?: 'fence' | 'exit'
  /** Live executions kept between turns; 0 replays every turn. Default: 1000. */
  stickyCacheSize?: number
  /** Encoded history bytes of live executions kept between turns; 0 replays every turn. Default: 64 MiB. */
  stickyCacheBytes?: number
  /** Time limit of one try of an activity that sets none itself; at least 1 ms. Default: none. */
  activityTimeoutMs?: Duration
  /** From the abort signal to giving up on an activity. Default: 10 s. */
  activityCancellationGracePeriodMs?: Duration
  /** Longest input, output, event or error in bytes; at most 1 000 000 000. Default: 64 MiB. */
  payloadByteLimit?: number
  /** Most events of one execution before a turn; an execution beyond it fails. Default: 1 000 000. */
  historyEventLimit?: number
  /** Most bytes of history of one execution before a turn, at most the default; an execution beyond it fails. Default: 256 MiB. */
  historyByteLimit?: number
  /** Most steps that one turn may ask for; an execution beyond it fails before any is written. Default: 100 000. */
  fanOutLimit?: number
  /** Most messages of one execution that its code has not read; an execution beyond it fails. Default: 100 000. */
  mailboxLimit?: number
  /** Instances that ended longer ago than this are deleted with all they have, with their descendants once all have ended; at least 1 ms. Default: none. */
  retentionMs?: Duration
  /** Messages to an id that does not exist are kept this long, then dropped with a warning event; at least 1 ms. Default: 1 day. */
  unknownInstanceRetentionMs?: Duration
  /** How a log line looks. The first runtime of a process decides. Default: `'compact'`. */
  logFormat?: LogFormat
  /** Severity of the lines of orchestrations and activities that are logged. The first runtime of a process decides. Default: `'info'`. */
  logLevel?: LogLevel
  /** Name of this service, 1 to 256 bytes, shown with each line of orchestrations and activities. Default: `'holdfast'`. */
  serviceName?: string
  /** Version of this service, 1 to 256 bytes, shown like its name. Default: none. */
  serviceVersion?: string
  /** Time between two looks at the depths of the queues, for `metricsSnapshot()` and the log; at least 1 ms. Default: 60 s. */
  gaugePollIntervalMs?: Duration
}

/** Options of a provider and its pool. Each is also an environment variable: `HOLDFAST_POOL_MAX_CLIENTS`. */
export interface JsPoolOptions {
  /** Connections at most, 1 to 32; a provider without a started runtime has 2 unless this is given. Default: 8. */
  maxClients?: number
  /** Callers waiting for a connection at most. Default: 128. */
  maxWaiting?: number
  /** Longest wait for a connection. Default: 5 s. */
  acquireTimeoutMs?: Duration
  /** Longest query. Default: 15 s. */
  queryTimeoutMs?: Duration
  /** An idle connection is closed after this time. Default: 30 s. */
  idleTimeoutMs?: Duration
  /** Longest connecting. Default: 5 s. */
  connectTimeoutMs?: Duration
  /** Time between two signs of life on an idle connection. Default: 60 s. */
  keepAliveIntervalMs?: Duration
  /** Times an operation is tried again after a broken connection. Default: 3. */
  retryAttempts?: number
  /** First delay of that. Default: 50 ms. */
  retryBaseDelayMs?: Duration
  /** Longest delay of that. Default: 1 s. */
  retryMaxDelayMs?: Duration
  /** Failed connections in a row that open the breaker. Default: 5. */
  breakerThreshold?: number
  /** How long it stays open before a trial. Default: 2 s. */
  breakerOpenMs?: Duration
  /** Whether a transaction-mode pooler is in between. Default: `'auto'`. */
  pooled?: boolean | 'auto'
  /** URL that leads past the pooler, for migrations, heartbeats and LISTEN; as a variable `HOLDFAST_DIRECT_URL`. Default: derived from the URL. */
  directUrl?: string
  /** Application name shown in `pg_stat_activity`, 1 to 48 bytes. Default: `'holdfast'`. */
  applicationName?: string
  /** Whether connecting brings the schema up to this version, or refuses one of another version. Default: `'apply'`. */
  migrate?: 'apply' | 'verify'
}

/** The same as {@link JsRuntimeOptions}. */
export type RuntimeOptions = JsRuntimeOptions

/** The same as {@link JsPoolOptions}. */
export type PoolOptions = JsPoolOptions

/** Where the value of an option comes from. */
export type OptionSource = 'default' | 'environment' | 'argument'

/** The value of an option in force, `null` for none, and where it comes from. */
export interface OptionInForce<T> {
  value: T | null
  source: OptionSource
}

/** Every option with its value in force; times in ms. */
export type OptionsInForce<T> = { readonly [K in keyof T]-?: OptionInForce<InMs<T[K]>> }

/** A time as a number of ms. */
type InMs<V> = Duration extends V ? number : Exclude<V, undefined>
