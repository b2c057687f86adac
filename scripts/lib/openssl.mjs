// Decides where the addon's TLS comes from: the system's OpenSSL, or one built here and linked in.

import { ask, has } from './run.mjs'

/** What the decision asks the machine; a test puts its own answers in. */
export const machine = {
  platform: process.platform,
  /** Version that pkg-config knows, or null. */
  systemVersion: () => (has('pkg-config') ? ask('pkg-config', ['--modversion', 'openssl']) : null),
  has,
}

/**
 * `{ features, says }` for the build, or `{ features: null, says }` when there is no way. `wanted` is 'system',
 * 'vendored' or undefined for whatever is there.
 */
export function chooseOpenSsl(wanted, on = machine) {
  if (on.platform !== 'linux') {
    return { features: [], says: 'TLS: the operating system\'s own library' }
  }
  const version = wanted === 'vendored' ? null : on.systemVersion()
  if (version !== null) {
    return { features: [], says: `TLS: the system's OpenSSL ${version}, linked dynamically (found by pkg-config)` }
  }
  const missing = ['perl', 'make'].filter((tool) => !on.has(tool))
  if (wanted !== 'system' && missing.length === 0) {
    return { features: ['vendored'], says: 'TLS: OpenSSL built from source and linked in (some minutes the first time)' }
  }
  const why = wanted === 'system' ? 'pkg-config finds no OpenSSL' : `no OpenSSL to link, and ${missing.join(' and ')} missing to build it`
  return {
    features: null,
    says: `TLS: ${why}. On Debian install one of these:\n  apt-get install pkg-config libssl-dev\n  apt-get install perl make`,
  }
}
