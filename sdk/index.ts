/**
 * The public surface of the package.
 */
export type { AbortOptions, WaitOptions } from './abort.js'
export { ActivityContext } from './activity/context.js'
export { ActivityHandle } from './activity/handle.js'
export type { ActivityFilter, ActivityInfo, ActivityPage, ActivityStatus, EnqueueItem, EnqueueItemInput, EnqueueItemOutput, EnqueueOptions } from './activity/shapes.js'
export { Client, type SendResult, type StartItem, type StartItemInput, type StartOptions, type StartResult, type StartedItem } from './client.js'
export {
  type ActivityDefinition,
  type ActivityFunction,
  type EventDefinition,
  type InputArguments,
  type OrchestrationDefinition,
  type OrchestrationFunction,
  defineActivity,
  defineEvent,
  defineOrchestration,
} from './define.js'
export { type ErrorPayload, fromErrorPayload, toErrorPayload } from './error-payload.js'
export {
  ActivityFailedError,
  CancelledError,
  CapacityError,
  CircuitOpenError,
  DirectDatabaseUrlError,
  DirectSessionCapacityError,
  HoldfastError,
  type HoldfastErrorOptions,
  InstanceExistsError,
  NondeterminismError,
  OrchestrationFailedError,
  SaturatedError,
  TimeoutError,
} from './errors.js'
export type { EventKind, EventLevel, EventListener, HoldfastEvent } from './events.js'
export type { Explanation, TurnState, Waiting } from './explain.js'
export { OrchestrationHandle } from './handle.js'
export type { RuntimeHealth, Slots } from './health.js'
export { MAX_KV_KEYS, MAX_KV_VALUE_BYTES, MAX_NAME_BYTES, MAX_TAG_NAME_BYTES, MAX_WORKER_TAGS } from './ids.js'
export type {
  BulkFilter,
  DeleteResult,
  InstanceFilter,
  InstancePage,
  InstanceTree,
  ListedStatus,
  OrchestrationStats,
  PruneOptions,
  PruneResult,
  QueueDepths,
  ResumeFilter,
  ResumeResult,
  RetryResult,
  SystemMetrics,
  Time,
} from './management-shapes.js'
export type { SendOptions } from './send-options.js'
export type { WorkerTagFilter } from './tag-filter.js'
export type { MetricsSnapshot } from './metrics.js'
export type {
  Duration,
  JsPoolOptions,
  JsRuntimeOptions,
  OptionInForce,
  OptionSource,
  OptionsInForce,
  PoolOptions,
  ReplayVersionRange,
  RuntimeOptions,
} from './options.js'
export type { AccessToken, EntraOptions } from './entra.js'
export { type PoolStats, PostgresProvider, type ProviderSource, type ProviderStats, closeAll } from './provider.js'
export { type ActivityOptions, OrchestrationContext, type ResultOf } from './replay/context.js'
export type { RaceResult, Settled } from './replay/joins.js'
export type { StepContext, StepFunction, StepOptions } from './replay/local.js'
export type { ActivityTask, Task } from './replay/task.js'
export type { ActivityRetryPolicy, RetryPolicy } from './retry.js'
export { Runtime } from './runtime.js'
export type { StandardIssue, StandardResult, StandardSchema } from './schema.js'
export { SqliteProvider } from './sqlite.js'
export type { ExecutionInfo, HistoryEvent, InstanceInfo, InstanceSummary, OrchestrationResult, OrchestrationStatus, Parked, StatusWord } from './status.js'
export { type LogFormat, type LogLevel, type TracingOptions, initTracing } from './trace.js'
