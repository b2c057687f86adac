// The little of the PostgreSQL protocol the starter needs: connect to a trusted unix socket and run simple
// statements. The server package has no psql, and a driver would be a dependency for two statements.
import * as net from 'node:net'
import { EmbeddedPostgresError } from './failure.js'

/** What a session said: the server's version and the rows of the last statement, each value as text. */
export type Answer = { readonly version: string; readonly rows: ReadonlyArray<ReadonlyArray<string | null>> }

/** Runs one statement as the superuser over the socket and closes the session. */
export async function runStatement(socketPath: string, database: string, statement: string, limitMs: number): Promise<Answer> {
  const socket = net.connect(socketPath)
  const session = new Session(socket, statement)
  const timer = setTimeout(() => session.fail(new Error(`no answer within ${limitMs} ms`)), limitMs)
  try {
    socket.write(startup({ user: 'postgres', database, application_name: 'holdfast embedded' }))
    return await session.answer
  } catch (error) {
    throw new EmbeddedPostgresError('EMBEDDED_START_FAILED', `the embedded server refused a session on ${database}: ${(error as Error).message}`, error)
  } finally {
    clearTimeout(timer)
    socket.destroy()
  }
}

class Session {
  readonly answer: Promise<Answer>
  fail!: (error: Error) => void
  #done!: (answer: Answer) => void
  #buffer: Buffer = Buffer.alloc(0)
  #version = ''
  #rows: Array<Array<string | null>> = []
  #sent = false

  constructor(private readonly socket: net.Socket, private readonly statement: string) {
    this.answer = new Promise((resolve, reject) => {
      this.#done = resolve
      this.fail = reject
    })
    socket.on('error', (error) => this.fail(error))
    socket.on('close', () => this.fail(new Error('the connection was closed')))
    socket.on('data', (chunk: Buffer) => {
      this.#buffer = Buffer.concat([this.#buffer, chunk])
      while (this.#buffer.length >= 5 && this.#buffer.length > this.#buffer.readUInt32BE(1)) {
        const end = 1 + this.#buffer.readUInt32BE(1)
        this.#message(String.fromCharCode(this.#buffer[0] ?? 0), this.#buffer.subarray(5, end))
        this.#buffer = this.#buffer.subarray(end)
      }
    })
  }

  #message(type: string, body: Buffer): void {
    if (type === 'E') this.fail(new Error(errorText(body)))
    else if (type === 'R' && body.readUInt32BE(0) !== 0) this.fail(new Error('it asks for a password on its own socket'))
    else if (type === 'D') this.#rows.push(readRow(body))
    else if (type === 'S') {
      const [name, value = ''] = body.toString('utf8').split('\0')
      if (name === 'server_version') this.#version = value.split(' ')[0] ?? value
    } else if (type === 'Z') {
      if (this.#sent) this.#done({ version: this.#version, rows: this.#rows })
      else this.socket.write(query(this.statement))
      this.#sent = true
    }
  }
}

function startup(parameters: Record<string, string>): Buffer {
  const body = Buffer.from(`${Object.entries(parameters).flat().join('\0')}\0\0`)
  const head = Buffer.alloc(8)
  head.writeUInt32BE(8 + body.length, 0)
  head.writeUInt32BE(196608, 4) // protocol 3.0
  return Buffer.concat([head, body])
}

function query(statement: string): Buffer {
  const body = Buffer.from(`${statement}\0`)
  const head = Buffer.alloc(5)
  head.write('Q', 0)
  head.writeUInt32BE(4 + body.length, 1)
  return Buffer.concat([head, body])
}

function readRow(body: Buffer): Array<string | null> {
  const row: Array<string | null> = []
  for (let at = 2; at < body.length;) {
    const length = body.readInt32BE(at)
    at += 4
    row.push(length < 0 ? null : body.toString('utf8', at, at + length))
    at += Math.max(length, 0)
  }
  return row
}

function errorText(body: Buffer): string {
  const fields = body.toString('utf8').split('\0')
  const field = (key: string): string => fields.find((text) => text.startsWith(key))?.slice(1) ?? ''
  return `${field('M')} (${field('C')})`
}
