/**
 * What a runtime can run: activities by name, orchestrations by name and exact version. Closed when the runtime starts. Of two functions
 * under one name the first one stays.
 */
import type { ActivityBody } from './activity/runner.js'
import { HoldfastError } from './errors.js'

/** The code of an orchestration, any types. */
export type OrchestrationBody = (ctx: never, input: never) => unknown

/** Version of an orchestration that names none. */
export const DEFAULT_VERSION = '1.0.0'

export class Registry {
  readonly #activities = new Map<string, ActivityBody>()
  readonly #orchestrations = new Map<string, Map<string, OrchestrationBody>>()
  #isClosed = false

  addActivity(name: string, body: ActivityBody): void {
    this.#checkOpen(`activity '${name}'`)
    const first = this.#activities.get(name)
    if (first === undefined) this.#activities.set(name, body)
    else if (first !== body) warnOfDuplicate(`activity '${name}'`)
  }

  addOrchestration(name: string, version: string, body: OrchestrationBody): void {
    this.#checkOpen(`orchestration '${name}'`)
    const versions = this.#orchestrations.get(name) ?? new Map<string, OrchestrationBody>()
    const first = versions.get(version)
    if (first === undefined) this.#orchestrations.set(name, versions.set(version, body))
    else if (first !== body) warnOfDuplicate(`orchestration '${name}' version ${version}`)
  }

  activity(name: string): ActivityBody | undefined {
    return this.#activities.get(name)
  }

  orchestration(name: string, version: string): OrchestrationBody | undefined {
    return this.#orchestrations.get(name)?.get(version)
  }

  /** Refuses registrations from now on and says what there is, as JSON text. */
  close(): string {
    this.#isClosed = true
    const orchestrations = [...this.#orchestrations].flatMap(([name, versions]) =>
      [...versions.keys()].map((version) => ({ name, version })),
    )
    return JSON.stringify({ orchestrations, activities: [...this.#activities.keys()] })
  }

  #checkOpen(what: string): void {
    if (!this.#isClosed) return
    throw new HoldfastError(`${what} cannot be registered: the runtime was started`, { code: 'RUNTIME_STARTED' })
  }
}

/** A second function under one name is most likely a mistake; which one runs must not depend on luck, so the first one does. */
function warnOfDuplicate(what: string): void {
  process.emitWarning(`${what} is registered already; the first function stays`, { code: 'HOLDFAST_DUPLICATE_REGISTRATION' })
}
