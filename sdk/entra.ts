/**
 * Passwords that end: tokens of Microsoft Entra, or of anything else that gives one for a while.
 *
 * A token is fetched before the first connection and again before it ends, by a timer that keeps no process alive, and handed to
 * the pool at once: a connection is never held up by a token, nor by a JavaScript loop that stands still. Connections that are
 * open stay as they are.
 */
import { HoldfastError } from './errors.js'
import { checkName, checkWhole, invalidArgument, kindOf } from './ids.js'
import { checkKeys } from './management-shapes.js'

/** A token, and when it ends in ms since 1970, as `@azure/identity` gives it. */
export interface AccessToken {
  token: string
  expiresOnTimestamp?: number
}

/** How {@link PostgresProvider.connectWithEntra} gets its tokens. */
export interface EntraOptions {
  /**
   * Gives a token for an audience: at the connect, and again before the last one ends.
   *
   * @example
   * const credential = new DefaultAzureCredential()        // of @azure/identity
   * { getToken: (audience) => credential.getToken(audience) }
   */
  getToken?: (audience: string) => PromiseLike<AccessToken | string | null> | AccessToken | string
  /** What the token is for. Default: `https://ossrdbms-aad.database.windows.net/.default`. */
  audience?: string
  /** Longest time between two tokens, in ms; at least 1000. Default: 20 minutes. */
  refreshIntervalMs?: number
  /** Connections of the pool. Default: that of `maxClients`. */
  maxConnections?: number
  /** Longest wait for one, in ms. Default: that of `acquireTimeoutMs` of the pool. */
  acquireTimeoutMs?: number
  /** Encryption, as in a URL. Default: `require`. */
  sslmode?: 'disable' | 'allow' | 'prefer' | 'require' | 'verify-ca' | 'verify-full'
}

const KEYS = ['getToken', 'audience', 'refreshIntervalMs', 'maxConnections', 'acquireTimeoutMs', 'sslmode']
const AUDIENCE = 'https://ossrdbms-aad.database.windows.net/.default'
const REFRESH_MS = 20 * 60_000
/** A token is renewed this long before it ends: connecting takes its time, and clocks differ. */
const MARGIN_MS = 5 * 60_000
/** Tokens that end soon, and failures, ask again no sooner than this. */
const SOONEST_MS = 30_000
/** Longest timer that Node has. */
const LONGEST_MS = 2 ** 31 - 1

/** Where to connect, with the first token as password. */
export interface EntraTarget {
  url: string
  /** Options of the pool that were given by their Entra names. */
  pool: { maxClients?: number; acquireTimeoutMs?: number }
  /** Begins to renew; the returned function ends it. */
  renew(put: (token: string) => void): () => void
}

/** Fetches the first token. `how` is for messages. */
export async function entraTarget(how: string, place: { host: string; port: number; database: string; user: string }, options: EntraOptions = {}): Promise<EntraTarget> {
  checkKeys(options, 'options', KEYS)
  const { getToken } = options
  if (typeof getToken !== 'function') {
    const message =
      `Failed to connect with ${how}: options.getToken is missing. Install @azure/identity and give ` +
      '{ getToken: (audience) => new DefaultAzureCredential().getToken(audience) }'
    throw new HoldfastError(message, { code: 'ENTRA_UNSUPPORTED' })
  }
  const everyMs = checkWhole(options.refreshIntervalMs ?? REFRESH_MS, 'refreshIntervalMs', 1000)
  const audience = options.audience ?? AUDIENCE
  const read = async (): Promise<AccessToken> => tokenOf(await getToken(audience))
  const pool: EntraTarget['pool'] = {}
  if (options.maxConnections !== undefined) pool.maxClients = options.maxConnections
  if (options.acquireTimeoutMs !== undefined) pool.acquireTimeoutMs = options.acquireTimeoutMs
  const first = await read().catch((cause: unknown) => {
    const text = cause instanceof Error ? cause.message : String(cause)
    throw new HoldfastError(`Failed to connect with ${how}: no token: ${text}`, { code: 'TOKEN_FAILED', retryable: true, cause })
  })
  return { url: urlOf(place, first.token, options.sslmode ?? 'require'), pool, renew: (put) => renewing(read, first, everyMs, put) }
}

/** How long to wait before the next token, in ms. */
export function nextRenewalMs({ expiresOnTimestamp }: AccessToken, everyMs: number, now: number): number {
  const untilEnd = expiresOnTimestamp === undefined ? Infinity : expiresOnTimestamp - now - MARGIN_MS
  return Math.min(Math.max(Math.min(everyMs, untilEnd), Math.min(everyMs, SOONEST_MS)), LONGEST_MS)
}

function renewing(read: () => Promise<AccessToken>, first: AccessToken, everyMs: number, put: (token: string) => void): () => void {
  let timer: NodeJS.Timeout | undefined
  let isOver = false
  const wait = (ms: number): void => {
    if (!isOver) timer = setTimeout(() => void again(), ms).unref()
  }
  const again = async (): Promise<void> => {
    try {
      const next = await read()
      if (isOver) return
      put(next.token)
      wait(nextRenewalMs(next, everyMs, Date.now()))
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error)
      process.emitWarning(`no new token for the database, tried again: ${text}`, { code: 'HOLDFAST_TOKEN' })
      wait(Math.min(everyMs, SOONEST_MS))
    }
  }
  wait(nextRenewalMs(first, everyMs, Date.now()))
  return () => {
    isOver = true
    clearTimeout(timer)
  }
}

function tokenOf(given: unknown): AccessToken {
  if (typeof given === 'string' && given !== '') return { token: given }
  const { token, expiresOnTimestamp } = (given ?? {}) as Partial<AccessToken>
  if (typeof token !== 'string' || token === '') throw invalidArgument(`getToken gave ${kindOf(given)} and no token`)
  return typeof expiresOnTimestamp === 'number' ? { token, expiresOnTimestamp } : { token }
}

function urlOf({ host, port, database, user }: { host: string; port: number; database: string; user: string }, token: string, sslmode: string): string {
  const name = checkName(host, 'host')
  const address = name.includes(':') && !name.startsWith('[') ? `[${name}]` : name.startsWith('/') ? encodeURIComponent(name) : name
  const [role, secret, base] = [checkName(user, 'user'), token, checkName(database, 'database')].map(encodeURIComponent)
  return `postgresql://${role}:${secret}@${address}:${checkWhole(port, 'port', 1)}/${base}?sslmode=${encodeURIComponent(sslmode)}`
}
