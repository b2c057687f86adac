// Runs commands, one process group each, and ends everything it started when this process is told to stop.
//
// Never kills what it did not start: it knows its children by their ids.

import { spawn, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import path from 'node:path'

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..')

const children = new Set()
const closers = []
let stopping = false

/** Runs `close` when this process is stopped from outside, after its children were told to end. */
export function onStop(close) {
  closers.push(close)
}

/**
 * Runs a command with its output passed on. Resolves to `{ code, output }`; `output` is kept only when asked for.
 * A command that cannot be started is a failure with code 127.
 */
export function run(command, args, { env = {}, keep = false, cwd = root } = {}) {
  return new Promise((resolve) => {
    const stdio = ['ignore', keep ? 'pipe' : 'inherit', keep ? 'pipe' : 'inherit']
    const child = spawn(command, args, { cwd, env: { ...process.env, ...env }, stdio, detached: process.platform !== 'win32' })
    children.add(child)
    let output = ''
    const pass = (stream, to) =>
      stream?.on('data', (chunk) => {
        output += chunk
        to.write(chunk)
      })
    pass(child.stdout, process.stdout)
    pass(child.stderr, process.stderr)
    child.once('error', (error) => {
      children.delete(child)
      console.error(`${command}: ${error.message}`)
      resolve({ code: 127, output })
    })
    child.once('close', (code) => {
      children.delete(child)
      // While everything is being stopped nothing goes on after this command.
      if (!stopping) resolve({ code: code ?? 1, output })
    })
  })
}

/** Output of a command that is asked a question; null when it is missing or fails. */
export function ask(command, args = []) {
  const { status, stdout } = spawnSync(command, args, { cwd: root, encoding: 'utf8' })
  return status === 0 ? stdout.trim() : null
}

/** Whether a program of this name is on the path. */
export function has(command) {
  const found = process.platform === 'win32' ? spawnSync('where', [command]) : spawnSync('sh', ['-c', `command -v ${command}`])
  return found.status === 0
}

/** Path of a command of an installed npm package. */
export function bin(name) {
  return path.join(root, 'node_modules', '.bin', process.platform === 'win32' ? `${name}.cmd` : name)
}

/** Prints a heading that a long log can be searched for. */
export function title(text) {
  console.log(`\n== ${text}`)
}

function end(child, signal) {
  try {
    if (process.platform === 'win32') child.kill(signal)
    else process.kill(-child.pid, signal)
  } catch {
    // It ended in between.
  }
}

async function stop(signal) {
  if (stopping) return
  stopping = true
  for (const child of children) end(child, 'SIGTERM')
  for (const close of closers.reverse()) await Promise.resolve(close()).catch((error) => console.error(error.message))
  for (const child of children) end(child, 'SIGKILL')
  process.exit(signal === 'SIGINT' ? 130 : 143)
}

process.once('SIGINT', () => stop('SIGINT'))
process.once('SIGTERM', () => stop('SIGTERM'))
process.once('SIGHUP', () => stop('SIGHUP'))
