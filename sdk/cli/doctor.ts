/**
 * `holdfast doctor`: checks a deployment with the options that its processes would have, and says what to do.
 */
import { HoldfastError } from '../errors.js'
import { binding } from '../native.js'
import { resolvePoolOptions, resolveRuntimeOptions } from '../options-in-force.js'
import { POOL_OPTIONS, RUNTIME_OPTIONS, poolVariable, runtimeVariable } from '../option-check.js'
import { nearest } from '../nearest.js'
import { unwrap } from '../unwrap.js'

/** How bad a finding is. */
export type Level = 'ok' | 'warning' | 'error'

/** One thing that was looked at. */
export interface Finding {
  id: string
  level: Level
  text: string
  advice: string
}

/** Variables that are no options. */
const OTHER_VARIABLES = ['HOLDFAST_DATABASE_URL', 'HOLDFAST_TEST_DATABASE_URL', 'HOLDFAST_TEST_POOLER_URL', 'HOLDFAST_CRASH_AT', 'HOLDFAST_PROFILE', 'HOLDFAST_OPENSSL']

/** Checks the deployment behind a URL, or behind the one of the environment. */
export async function doctor(url: string | undefined, schema: string): Promise<Finding[]> {
  const found = variables()
  const address = url ?? fromEnvironment()
  if (address === undefined) {
    found.push({
      id: 'url',
      level: 'error',
      text: 'no database URL',
      advice: 'Give one as argument, or set HOLDFAST_DATABASE_URL or DATABASE_URL; embeddedUrl() of holdfast/dev gives that of the development server.',
    })
    return found
  }
  try {
    const pool = resolvePoolOptions(undefined)
    const runtime = resolveRuntimeOptions(undefined)
    const text = unwrap(await binding().JsDoctor.examine(address, schema, pool.given, runtime.given))
    found.push(...(JSON.parse(text) as Finding[]))
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error
    found.push({ id: 'options', level: 'error', text: error.message, advice: 'Correct the option.' })
  }
  return found
}

/** 0 when all is well, 1 with warnings, 2 with errors. */
export function exitCode(findings: readonly Finding[]): number {
  if (findings.some(({ level }) => level === 'error')) return 2
  return findings.some(({ level }) => level === 'warning') ? 1 : 0
}

function fromEnvironment(): string | undefined {
  const given = [process.env['HOLDFAST_DATABASE_URL'], process.env['DATABASE_URL']]
  return given.map((text) => text?.trim()).find((text) => text !== undefined && text !== '')
}

/** Variables that look like options and are none: their value is ignored. */
function variables(): Finding[] {
  const known = [...RUNTIME_OPTIONS.map(runtimeVariable), ...POOL_OPTIONS.map(poolVariable), ...OTHER_VARIABLES]
  const strange = Object.keys(process.env).filter((name) => name.startsWith('HOLDFAST_') && !name.startsWith('HOLDFAST_TEST_') && !known.includes(name))
  return strange.map((name): Finding => {
    const near = nearest(name, known)
    const advice = near === undefined ? 'Remove it; docs/options.md has all variables.' : `Did you mean ${near}?`
    return { id: 'variables', level: 'warning', text: `the environment variable ${name} is no option`, advice }
  })
}
