// Prepares what a start needs: the libraries' links, binaries the server's user can read, and a fresh data folder,
// copied from a template that is made once per project and server version (initdb takes 1.5 s, a copy 0.1 s).
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, constants, mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { copyFile, mkdir, readdir, readlink, symlink } from 'node:fs/promises'
import * as path from 'node:path'
import { canReach, giveTo, type Account } from './account.js'
import { majorOf, type Binaries } from './binaries.js'
import { EmbeddedPostgresError } from './failure.js'
import { buildFolder, digest, temporaryFolder } from './folder.js'

/** Raised when the arguments of initdb below change. */
const TEMPLATE_EDITION = 1

/** Programs that can be run as they are. */
export type Programs = { readonly postgres: string; readonly initdb: string; readonly version: string; readonly env: Readonly<Record<string, string>> }

/** Makes the found binaries runnable by the account: a copy where it cannot read them, and the missing links. */
export async function preparePrograms(found: Binaries, home: string, account: Account | undefined): Promise<Programs> {
  const cache = path.join(home, 'cache')
  const { bundle } = found
  if (bundle === undefined) {
    if (!canReach(account, path.join(found.bin, 'postgres'), true)) {
      throw new EmbeddedPostgresError('EMBEDDED_FOLDER', `uid ${account?.uid} cannot run ${found.bin}/postgres: a parent folder or the file is not readable for it`)
    }
    return programs(found.bin, found.version, undefined)
  }
  let { root } = bundle
  if (!isReadableTree(account, root)) {
    const copy = path.join(cache, `server-${found.version}`)
    await buildFolder(copy, async (draft) => {
      await copyTree(root, draft)
      makeReadable(draft)
    })
    root = copy
  }
  const links = path.join(cache, `links-${found.version}-${digest(root)}`)
  await buildFolder(links, async (draft) => {
    mkdirSync(draft, { recursive: true })
    for (const link of bundle.links) symlinkSync(path.join(root, link.source), path.join(draft, path.basename(link.target)))
  })
  return programs(path.join(root, 'bin'), found.version, `${links}:${path.join(root, 'lib')}`)
}

/** Makes `target` a data folder of the account. `target` must not exist; it appears complete or not at all. */
export async function makeDataFolder(target: string, from: Programs, home: string, account: Account | undefined, durable: boolean): Promise<void> {
  const template = path.join(home, 'cache', `template-${from.version}-${TEMPLATE_EDITION}`)
  await buildFolder(template, (draft) => initdb(draft, from, account))
  await buildFolder(target, async (draft) => {
    await copyTree(template, draft)
    chmodSync(draft, 0o700)
    giveTo(account, draft)
    if (durable) await run(from.initdb, ['--sync-only', '-D', draft], from.env, account)
  })
}

/** The superuser's password for connections over TCP; the template is made with it. */
export function readPassword(dataFolder: string): string {
  return readFileSync(path.join(dataFolder, 'holdfast.password'), 'utf8').trim()
}

async function initdb(draft: string, from: Programs, account: Account | undefined): Promise<void> {
  // The server's user cannot make a folder in the project when we are root: it works in a folder of its own.
  const work = temporaryFolder(account)
  try {
    const password = randomBytes(18).toString('base64url')
    const passwordFile = path.join(work, 'password')
    const data = path.join(work, 'data')
    writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 })
    mkdirSync(data, { mode: 0o700 })
    if (account !== undefined) for (const file of [data, passwordFile]) chownSync(file, account.uid, account.gid)
    await run(from.initdb, [
      '-D', data, '-U', 'postgres', '--auth-local=trust', '--auth-host=scram-sha-256', `--pwfile=${passwordFile}`,
      '-E', 'UTF8', ...localeArguments(from.version), '--wal-segsize=1', '--no-sync', '--no-instructions',
    ], from.env, account)
    writeFileSync(path.join(data, 'holdfast.password'), `${password}\n`, { mode: 0o600 })
    await copyTree(data, draft)
    giveTo(account, draft)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function localeArguments(version: string): string[] {
  // From 17 on the server has C.UTF-8 built in; before, the system must know it, as every current glibc does.
  if (Number.parseInt(majorOf(version), 10) >= 17) return ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
  return [process.platform === 'darwin' ? '--locale=C' : '--locale=C.UTF-8']
}

function programs(bin: string, version: string, libraries: string | undefined): Programs {
  // Nothing of the caller's environment reaches the server: neither PG* variables nor an odd locale or time zone.
  const env: Record<string, string> = { LC_ALL: 'C', PATH: process.env['PATH'] ?? '/usr/bin:/bin', TZ: 'UTC' }
  if (libraries !== undefined) env[process.platform === 'darwin' ? 'DYLD_LIBRARY_PATH' : 'LD_LIBRARY_PATH'] = libraries
  return { postgres: path.join(bin, 'postgres'), initdb: path.join(bin, 'initdb'), version, env }
}

async function run(program: string, args: string[], env: Readonly<Record<string, string>>, account: Account | undefined): Promise<void> {
  const child = spawn(program, args, { cwd: '/', env, stdio: ['ignore', 'pipe', 'pipe'], ...(account ?? {}) })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => { output += text })
  const failure = await new Promise<string | undefined>((resolve) => {
    child.on('error', (error) => resolve(error.message))
    child.on('close', (code, signal) => resolve(code === 0 ? undefined : `exit ${code ?? signal}`))
  })
  if (failure !== undefined) {
    throw new EmbeddedPostgresError('EMBEDDED_START_FAILED', `${path.basename(program)} failed (${failure}) in ${path.dirname(program)}:\n${output.trim().split('\n').slice(-15).join('\n')}`)
  }
}

/** Copies files, folders and links; as fast as the file system allows (a clone where it can). */
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 })
  const entries = await readdir(from, { withFileTypes: true })
  const files = entries.filter((entry) => entry.isFile())
  await Promise.all(files.map((entry) => copyFile(path.join(from, entry.name), path.join(to, entry.name), constants.COPYFILE_FICLONE)))
  for (const entry of entries) {
    if (entry.isDirectory()) await copyTree(path.join(from, entry.name), path.join(to, entry.name))
    if (entry.isSymbolicLink()) await symlink(await readlink(path.join(from, entry.name)), path.join(to, entry.name))
  }
}

function isReadableTree(account: Account | undefined, root: string): boolean {
  if (account === undefined) return true
  const files = ['bin/postgres', 'bin/initdb', 'share', 'lib'].map((name) => path.join(root, name))
  const library = readdirSync(path.join(root, 'lib')).find((name) => name.includes('.so') || name.includes('.dylib'))
  if (library !== undefined) files.push(path.join(root, 'lib', library))
  return files.every((file) => canReach(account, file, path.dirname(file) === path.join(root, 'bin')))
}

function makeReadable(folder: string): void {
  chmodSync(folder, 0o755)
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name)
    if (entry.isDirectory()) makeReadable(file)
    else if (entry.isFile()) chmodSync(file, path.basename(folder) === 'bin' ? 0o755 : 0o644)
  }
}
