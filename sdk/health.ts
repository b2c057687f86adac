/**
 * How a runtime does, for probes. The engine judges; here only what it cannot know is added: whether it runs at all.
 */

/** Places for work of one kind. */
export interface Slots {
  /** In progress. */
  used: number
  free: number
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
  status: 'healthy' | 'degraded' | 'unhealthy'
  state: 'new' | 'starting' | 'started' | 'stopping' | 'stopped'
  /** What is not as it should be, for people; empty when healthy. */
  reasons: string[]
  /** The node's id; null while it is not registered. */
  nodeId: string | null
  /** Grows when the node was declared dead and registered again. */
  epoch: number | null
  /** Time since the last successful heartbeat was sent. */
  heartbeatAgeMs: number | null
  /** Whether the last call on the connection of the heartbeats succeeded. */
  databaseReachable: boolean
  /** Not heard for too long: nothing is started, because the others may take over soon. */
  fenced: boolean
  eventLoop: 'healthy' | 'stalled' | 'hung'
  /** A part of the engine that makes no progress. */
  stuckPart: string | null
  /** `unowned`: after an outage, leases that ran out are left to their owners for a while. */
  claims: 'all' | 'unowned' | 'nothing'
  orchestrationSlots: Slots
  activitySlots: Slots
}

/** The health of a runtime in this state; `engine` is what the addon tells, null before its start. */
export function healthOf(state: RuntimeHealth['state'], engine: string | null): RuntimeHealth {
  const isRunning = state === 'started' || state === 'stopping'
  const told = engine === null ? {} : (JSON.parse(engine) as Partial<RuntimeHealth>)
  const health: RuntimeHealth = {
    status: 'unhealthy',
    reasons: [],
    nodeId: null,
    epoch: null,
    heartbeatAgeMs: null,
    databaseReachable: false,
    fenced: false,
    eventLoop: 'healthy',
    stuckPart: null,
    claims: 'nothing',
    orchestrationSlots: { used: 0, free: 0 },
    activitySlots: { used: 0, free: 0 },
    ...told,
    state,
  }
  if (isRunning) return health
  return { ...health, status: 'unhealthy', claims: 'nothing', reasons: [`the runtime is ${state}`] }
}
