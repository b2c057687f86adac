#!/usr/bin/env node
/**
 * The command line: `holdfast doctor [URL] [--schema NAME] [--json]`.
 */
import { type Finding, doctor, exitCode } from './doctor.js'

const USAGE = `usage: holdfast doctor [URL] [--schema NAME] [--json]

Checks a deployment: the database behind URL (or HOLDFAST_DATABASE_URL, or DATABASE_URL) with the options of the
environment. Exit code 0: all is well, 1: warnings, 2: errors.
`

const MARKS = { ok: 'ok     ', warning: 'WARNING', error: 'ERROR  ' }

interface Call {
  url: string | undefined
  schema: string
  json: boolean
}

function read(args: readonly string[]): Call | undefined {
  const call: Call = { url: undefined, schema: 'holdfast', json: false }
  if (args[0] !== 'doctor') return undefined
  for (let i = 1; i < args.length; i++) {
    const arg = args[i] ?? ''
    if (arg === '--json') call.json = true
    else if (arg === '--schema' && args[i + 1] !== undefined) call.schema = args[++i] ?? ''
    else if (arg.startsWith('-') || call.url !== undefined) return undefined
    else call.url = arg
  }
  return call
}

function show(findings: readonly Finding[]): string {
  const lines = findings.map(({ id, level, text, advice }) => {
    const line = `${MARKS[level]}  ${id.padEnd(14)}${text}`
    return advice === '' ? line : `${line}\n${' '.repeat(23)}${advice}`
  })
  return `${lines.join('\n')}\n`
}

async function main(): Promise<void> {
  const call = read(process.argv.slice(2))
  if (call === undefined) {
    process.stderr.write(USAGE)
    process.exitCode = 2
    return
  }
  const findings = await doctor(call.url, call.schema)
  process.stdout.write(call.json ? `${JSON.stringify({ findings })}\n` : show(findings))
  process.exitCode = exitCode(findings)
}

void main()
