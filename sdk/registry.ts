/**
 * What a runtime can run: activities by name, orchestrations by name and exact version. Closed when the runtime starts.
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
    if (this.#activities.has(name)) throw duplicate(`activity '${name}'`)
    this.#activities.set(name, body)
  }

  addOrchestration(name: string, version: string, body: OrchestrationBody): void {
    this.#checkOpen(`orchestration '${name}'`)
    const versions = this.#orchestrations.get(name) ?? new Map<string, OrchestrationBody>()
    if (versions.has(version)) throw duplicate(`orchestration '${name}' version ${version}`)
    this.#orchestrations.set(name, versions.set(version, body))
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

function duplicate(what: string): HoldfastError {
  return new HoldfastError(`${what} is registered already`, { code: 'DUPLICATE_REGISTRATION' })
}
