/**
 * What one runtime did since its start, as `runtime.metricsSnapshot()` tells it.
 */

/** Numbers of one runtime since its start. What is counted is counted once its commit is certain. */
export interface MetricsSnapshot {
  /** Instances that had their first turn here. */
  orchStarts: number
  orchCompletions: number
  /** Failed, for whatever reason; cancelled ones included. */
  orchFailures: number
  /** Of those: by an error of their own code, or cancelled. */
  orchApplicationErrors: number
  /** Of those: because the engine could not do its part. */
  orchInfrastructureErrors: number
  /** Of those: because code is missing or does not fit. */
  orchConfigurationErrors: number
  /** Of those: because their deliveries were used up. */
  orchPoison: number
  activitySuccess: number
  /** Tries of activities that failed by their own code. */
  activityAppErrors: number
  /** Tries that failed because the engine could not do its part. */
  activityInfraErrors: number
  /** Tries that failed because code is missing or does not fit. */
  activityConfigErrors: number
  /** Activities whose deliveries were used up. */
  activityPoison: number
  /** Turns claimed. */
  orchDispatcherItemsFetched: number
  /** Activities claimed. */
  workerDispatcherItemsFetched: number
  /** Executions that went on as new. */
  orchContinueAsNew: number
  /** Children started. */
  suborchestrationCalls: number
  /** Claims that failed and commits that were refused. */
  providerErrors: number
  /** Turns that any runtime could have claimed at the last look, each `gaugePollIntervalMs`; null before the first. */
  orchQueueDepth: number | null
  /** The same of activities. */
  workerQueueDepth: number | null
}
