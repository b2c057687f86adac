// The one error class of the embedded server: a code for programs, a text that says what to do next.

/** What went wrong with the embedded server, for programs. */
export type EmbeddedPostgresErrorCode =
  /** No server binaries were found, or none exist for this platform. */
  | 'EMBEDDED_NO_BINARIES'
  /** The server, or the program that makes its data folder, did not start. */
  | 'EMBEDDED_START_FAILED'
  /** The folder is not usable: foreign content, another version, not reachable by the server's user. */
  | 'EMBEDDED_FOLDER'
  /** Another PostgreSQL that is not ours runs on the folder, or ours runs with other settings. */
  | 'EMBEDDED_IN_USE'
  /** An option has a value that cannot be used. */
  | 'EMBEDDED_OPTION'

/**
 * An error of the embedded development server.
 *
 * @example
 * try { await EmbeddedPostgres.start() }
 * catch (error) { if (error instanceof EmbeddedPostgresError) console.error(error.code, error.message) }
 */
export class EmbeddedPostgresError extends Error {
  override readonly name = 'EmbeddedPostgresError'
  /** For programs; the message is for people. */
  readonly code: EmbeddedPostgresErrorCode

  constructor(code: EmbeddedPostgresErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
  }
}

/** The code of a system error (`ENOENT`, ...), or undefined for any other value. */
export function systemCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : undefined
}
