// The demo's files: which there are, and reading one without ever trusting that it is still what it was. Names are
// bytes on disk; one that is not UTF-8 travels as base64, because only text can be part of an orchestration's input.
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { open, opendir, stat } from 'node:fs/promises'
import path from 'node:path'
import { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'

/** Beyond this only the size of a file is indexed: the demo shows orchestrations, not disks. */
const HUGE_BYTES = 64 * 1024 * 1024

/** A NUL this early makes a file binary, as git decides it. */
const SNIFF_BYTES = 8000

/** Folders of things that are made, not written: passed over where git does not say what the sources are. */
const MADE = new Set(['.git', 'node_modules', 'target', 'dist', '.holdfast'])

/** What a file system answers when a file is not there (any more) or not ours to read. */
const ANSWERS = { ENOENT: 'gone', ENOTDIR: 'gone', EACCES: 'unreadable', EPERM: 'unreadable', ELOOP: 'special', EISDIR: 'special', ENXIO: 'special' }

/** The project's own sources: what git knows or would add, else all files but those that are made. */
export async function listSources(folder) {
  try {
    const text = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'], maxBuffer: 1 << 30 })
    const names = new Set(text.toString('latin1').split('\0').filter((name) => name !== ''))
    if (names.size > 0) return [...names].map((name) => nameOf(Buffer.from(name, 'latin1')))
  } catch {
    // No git here, or no repository.
  }
  return listAll(folder, MADE)
}

/** Every file below a folder (the demo's own database apart), in a stable order. */
export async function listAll(folder, except = new Set(['.holdfast'])) {
  const names = []
  const visit = async (inside) => {
    const entries = []
    try {
      for await (const entry of await opendir(Buffer.from(inside, 'latin1'), { encoding: 'buffer' })) entries.push(entry)
    } catch (error) {
      if (ANSWERS[error.code] === undefined) throw error
      return // a folder that vanished or is closed to us has no files for us
    }
    for (const entry of entries) {
      const name = entry.name.toString('latin1')
      const full = `${inside}/${name}`
      if (entry.isDirectory()) {
        if (!except.has(name)) await visit(full)
      } else {
        names.push(full)
      }
    }
  }
  const root = Buffer.from(folder).toString('latin1')
  await visit(root)
  return names.sort().map((name) => nameOf(Buffer.from(name.slice(root.length + 1), 'latin1')))
}

/** A name as it is shown and stored: unreadable bytes and line ends are visible. */
export function shownName({ text, base64 }) {
  return text ?? Buffer.from(base64, 'base64').toString('utf8')
}

/** Looks at a file: `{ kind, bytes, changed }`, where kind says whether there is something to read. */
export async function look(folder, name) {
  return await answering(async () => {
    const found = await stat(pathOf(folder, name))
    if (!found.isFile()) return { kind: 'special' }
    const facts = { bytes: found.size, changed: found.mtimeMs }
    if (found.size === 0) return { kind: 'empty', ...facts }
    if (found.size > HUGE_BYTES) return { kind: 'huge', ...facts }
    return { kind: (await sniff(folder, name)) ? 'binary' : 'text', ...facts }
  })
}

/** Hashes and compresses a file as it streams by: `{ sha256, packed, bytes }`; memory does not grow with the file. */
export async function pack(folder, name, signal) {
  return await answering(async () => {
    const file = await openRegular(folder, name)
    const hash = createHash('sha256')
    let bytes = 0
    let packed = 0
    try {
      await pipeline(
        file.createReadStream({ autoClose: false, end: HUGE_BYTES - 1 }), // it may grow while it is read
        async function* (chunks) {
          for await (const chunk of chunks) {
            hash.update(chunk)
            bytes += chunk.length
            yield chunk
          }
        },
        createGzip(),
        new Writable({ write: (chunk, _, done) => done(void (packed += chunk.length)) }),
        { signal },
      )
    } finally {
      await file.close()
    }
    return { sha256: hash.digest('hex'), packed, bytes }
  })
}

async function answering(act) {
  try {
    return await act()
  } catch (error) {
    const kind = ANSWERS[error.code]
    if (kind === undefined) throw error
    return { kind }
  }
}

async function sniff(folder, name) {
  const file = await openRegular(folder, name)
  try {
    const { bytesRead, buffer } = await file.read(Buffer.alloc(SNIFF_BYTES), 0, SNIFF_BYTES, 0)
    return buffer.subarray(0, bytesRead).includes(0)
  } finally {
    await file.close()
  }
}

/** Does not wait for the other end of a pipe that took the file's place. */
function openRegular(folder, name) {
  return open(pathOf(folder, name), constants.O_RDONLY | constants.O_NONBLOCK)
}

function pathOf(folder, { text, base64 }) {
  return text === undefined ? Buffer.concat([Buffer.from(`${folder}${path.sep}`), Buffer.from(base64, 'base64')]) : path.join(folder, text)
}

function nameOf(bytes) {
  const text = bytes.toString('utf8')
  return Buffer.from(text).equals(bytes) ? { text } : { base64: bytes.toString('base64') }
}
