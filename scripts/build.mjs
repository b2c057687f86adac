// npm run build: the addon, then the TypeScript part.
//
//   --dev       unoptimised, what `npm test` uses (also HOLDFAST_PROFILE=dev)
//   --vendored  OpenSSL built from source and linked in, what releases use (also HOLDFAST_OPENSSL=vendored|system)
//   --target T  another target of package.json's napi block (--use-napi-cross: with the C library of old systems)
//
// Whether anything changed is cargo's business; this script keeps no state.

import { existsSync } from 'node:fs'
import path from 'node:path'

import { chooseOpenSsl } from './lib/openssl.mjs'
import { bin, has, root, run, title } from './lib/run.mjs'

const args = process.argv.slice(2)
const dev = args.includes('--dev') || process.env.HOLDFAST_PROFILE === 'dev'
const wanted = args.includes('--vendored') ? 'vendored' : process.env.HOLDFAST_OPENSSL || undefined
const target = args.includes('--target') ? args[args.indexOf('--target') + 1] : undefined

function fail(text) {
  console.error(text)
  process.exit(1)
}

async function buildAddon() {
  if (!has('cargo')) fail('cargo is missing: install Rust 1.88 or newer (rustup.rs)')
  const openssl = chooseOpenSsl(wanted)
  title(`addon, ${dev ? 'unoptimised' : 'release'}`)
  console.log(openssl.says)
  if (openssl.features === null) process.exit(1)
  const flags = ['build', '--platform', '-p', 'holdfast-napi', '--output-dir', '.', '--js', 'binding.cjs', '--dts', 'binding.d.ts', '--no-const-enum']
  if (!dev) flags.push('--release')
  if (target) flags.push('--target', target)
  if (args.includes('--use-napi-cross')) flags.push('--use-napi-cross')
  if (openssl.features.length > 0) flags.push('--features', openssl.features.join(','))
  const { code } = await run(bin('napi'), flags)
  if (code !== 0) fail('the addon was not built')
}

async function buildSdk() {
  const script = path.join(root, 'scripts/build-sdk.mjs')
  if (!existsSync(script)) return
  title('sdk')
  const { code } = await run(process.execPath, [script])
  if (code !== 0) fail('the TypeScript part was not built')
}

await buildAddon()
await buildSdk()
