/**
 * The `…Typed` half of an orchestration's context: the same steps, for code written with typed calls.
 *
 * They differ in one rule: a result that is a text is read as JSON once more (a text that is no JSON stays as it is), which
 * undoes a second encoding by the code that made it. A step that is a part of `all` or `race` follows the rule of that call.
 */
import type { ActivityDefinition, EventDefinition, InputArguments, OrchestrationDefinition } from '../define.js'
import type { ActivityRetryPolicy } from '../retry.js'
import type { ActivityOptions, ResultOf } from './context.js'
import type { RaceResult, Settled } from './joins.js'
import { type ActivityTask, type Task, type TaskNode, isTask } from './task.js'

/** The calls that have a typed sister. */
export abstract class TypedSteps {
  /** @internal */
  protected constructor() {}

  abstract scheduleActivity<O = unknown, I = unknown>(
    activity: string | ActivityDefinition<I, O>,
    ...rest: InputArguments<I, [options?: ActivityOptions]>
  ): ActivityTask<O>
  abstract scheduleActivityOnSession<O = unknown, I = unknown>(
    activity: string | ActivityDefinition<I, O>,
    input: NoInfer<I>,
    sessionId: string,
  ): ActivityTask<O>
  abstract scheduleActivityWithRetry<O = unknown, I = unknown>(
    activity: string | ActivityDefinition<I, O>,
    input: NoInfer<I>,
    retry: ActivityRetryPolicy,
  ): ActivityTask<O>
  abstract scheduleActivityWithRetryOnSession<O = unknown, I = unknown>(
    activity: string | ActivityDefinition<I, O>,
    input: NoInfer<I>,
    retry: ActivityRetryPolicy,
    sessionId: string,
  ): ActivityTask<O>
  abstract scheduleSubOrchestration<O = unknown, I = unknown>(
    orchestration: string | OrchestrationDefinition<I, O>,
    ...rest: InputArguments<I>
  ): Task<O>
  abstract scheduleSubOrchestrationWithId<O = unknown, I = unknown>(
    orchestration: string | OrchestrationDefinition<I, O>,
    instanceId: string,
    ...rest: InputArguments<I>
  ): Task<O>
  abstract scheduleSubOrchestrationVersioned<O = unknown, I = unknown>(
    orchestration: string | OrchestrationDefinition<I, O>,
    version: string | null | undefined,
    ...rest: InputArguments<I>
  ): Task<O>
  abstract scheduleSubOrchestrationVersionedWithId<O = unknown, I = unknown>(
    orchestration: string | OrchestrationDefinition<I, O>,
    version: string | null | undefined,
    instanceId: string,
    ...rest: InputArguments<I>
  ): Task<O>
  abstract startOrchestration<I = unknown>(
    orchestration: string | OrchestrationDefinition<I, unknown>,
    instanceId: string,
    ...rest: InputArguments<I>
  ): Task<null>
  abstract startOrchestrationVersioned<I = unknown>(
    orchestration: string | OrchestrationDefinition<I, unknown>,
    version: string | null | undefined,
    instanceId: string,
    ...rest: InputArguments<I>
  ): Task<null>
  abstract waitForEvent<T = unknown>(event: string | EventDefinition<T>): Task<T>
  abstract dequeueEvent<T = unknown>(queue: string | EventDefinition<T>): Task<T>
  abstract continueAsNew(input?: unknown): Task<never>
  abstract continueAsNewVersioned(input: unknown, version: string | null | undefined): Task<never>
  abstract all<const P extends readonly unknown[]>(parts: P): Task<{ -readonly [K in keyof P]: Settled<ResultOf<P[K]>> }>
  abstract race<P extends readonly unknown[]>(...parts: P): Task<RaceResult<ResultOf<P[number]>>>

  /** The same as `scheduleActivity`; a result that is a text is read as JSON once more. */
  scheduleActivityTyped<O = unknown, I = unknown>(
    activity: string | ActivityDefinition<I, O>,
    ...rest: InputArguments<I, [options?: ActivityOptions]>
  ): ActivityTask<O> {
    return typed(this.scheduleActivity<O, I>(activity, ...rest))
  }

  /** The same as `scheduleActivityOnSession`; a result that is a text is read as JSON once more. */
  scheduleActivityOnSessionTyped<O = unknown, I = unknown>(
    activity: string | ActivityDefinition<I, O>,
    input: NoInfer<I>,
    sessionId: string,
  ): ActivityTask<O> {
    return typed(this.scheduleActivityOnSession<O, I>(activity, input, sessionId))
  }

  /** The same as `scheduleActivityWithRetry`; a result that is a text is read as JSON once more. */
  scheduleActivityWithRetryTyped<O = unknown, I = unknown>(
    activity: string | ActivityDefinition<I, O>,
    input: NoInfer<I>,
    retry: ActivityRetryPolicy,
  ): ActivityTask<O> {
    return typed(this.scheduleActivityWithRetry<O, I>(activity, input, retry))
  }

  /** The same as `scheduleActivityWithRetryOnSession`; a result that is a text is read as JSON once more. */
  scheduleActivityWithRetryOnSessionTyped<O = unknown, I = unknown>(
    activity: string | ActivityDefinition<I, O>,
    input: NoInfer<I>,
    retry: ActivityRetryPolicy,
    sessionId: string,
  ): ActivityTask<O> {
    return typed(this.scheduleActivityWithRetryOnSession<O, I>(activity, input, retry, sessionId))
  }

  /** The same as `scheduleSubOrchestration`; a result that is a text is read as JSON once more. */
  scheduleSubOrchestrationTyped<O = unknown, I = unknown>(
    orchestration: string | OrchestrationDefinition<I, O>,
    ...rest: InputArguments<I>
  ): Task<O> {
    return typed(this.scheduleSubOrchestration<O, I>(orchestration, ...rest))
  }

  /** The same as `scheduleSubOrchestrationWithId`; a result that is a text is read as JSON once more. */
  scheduleSubOrchestrationWithIdTyped<O = unknown, I = unknown>(
    orchestration: string | OrchestrationDefinition<I, O>,
    instanceId: string,
    ...rest: InputArguments<I>
  ): Task<O> {
    return typed(this.scheduleSubOrchestrationWithId<O, I>(orchestration, instanceId, ...rest))
  }

  /** The same as `scheduleSubOrchestrationVersioned`; a result that is a text is read as JSON once more. */
  scheduleSubOrchestrationVersionedTyped<O = unknown, I = unknown>(
    orchestration: string | OrchestrationDefinition<I, O>,
    version: string | null | undefined,
    ...rest: InputArguments<I>
  ): Task<O> {
    return typed(this.scheduleSubOrchestrationVersioned<O, I>(orchestration, version, ...rest))
  }

  /** The same as `scheduleSubOrchestrationVersionedWithId`; a result that is a text is read as JSON once more. */
  scheduleSubOrchestrationVersionedWithIdTyped<O = unknown, I = unknown>(
    orchestration: string | OrchestrationDefinition<I, O>,
    version: string | null | undefined,
    instanceId: string,
    ...rest: InputArguments<I>
  ): Task<O> {
    return typed(this.scheduleSubOrchestrationVersionedWithId<O, I>(orchestration, version, instanceId, ...rest))
  }

  /** The same as `startOrchestration`. */
  startOrchestrationTyped<I = unknown>(
    orchestration: string | OrchestrationDefinition<I, unknown>,
    instanceId: string,
    ...rest: InputArguments<I>
  ): Task<null> {
    return this.startOrchestration<I>(orchestration, instanceId, ...rest)
  }

  /** The same as `startOrchestrationVersioned`. */
  startOrchestrationVersionedTyped<I = unknown>(
    orchestration: string | OrchestrationDefinition<I, unknown>,
    version: string | null | undefined,
    instanceId: string,
    ...rest: InputArguments<I>
  ): Task<null> {
    return this.startOrchestrationVersioned<I>(orchestration, version, instanceId, ...rest)
  }

  /** The same as `waitForEvent`. */
  waitForEventTyped<T = unknown>(event: string | EventDefinition<T>): Task<T> {
    return this.waitForEvent<T>(event)
  }

  /** The same as `dequeueEvent`. */
  dequeueEventTyped<T = unknown>(queue: string | EventDefinition<T>): Task<T> {
    return this.dequeueEvent<T>(queue)
  }

  /** The same as `continueAsNew`. */
  continueAsNewTyped(input?: unknown): Task<never> {
    return this.continueAsNew(input)
  }

  /** The same as `continueAsNewVersioned`. */
  continueAsNewVersionedTyped(input: unknown, version: string | null | undefined): Task<never> {
    return this.continueAsNewVersioned(input, version)
  }

  /** The same as `all`; each `ok` or `err` that is a text is read as JSON once more. */
  allTyped<const P extends readonly unknown[]>(parts: P): Task<{ -readonly [K in keyof P]: Settled<ResultOf<P[K]>> }> {
    return typed(this.all<P>(parts))
  }

  /** The same as `race`; a value that is a text is read as JSON once more. */
  raceTyped<P extends readonly unknown[]>(...parts: P): Task<RaceResult<ResultOf<P[number]>>> {
    return typed(this.race<P>(...parts))
  }
}

/** Marks a task, which is given back: the mark is read when its result is handed to the code. */
function typed<T extends Task>(task: T): T {
  if (isTask(task)) (task as TaskNode).isTyped = true
  return task
}
