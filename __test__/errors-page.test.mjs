// docs/errors.md names every code that the sources give, and no other.
import assert from 'node:assert/strict'
import { readFileSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..')

/** The texts of all files of a kind below a folder, without unit tests. */
function sources(folder, ending) {
  const names = readdirSync(path.join(root, folder), { recursive: true }).filter((name) => name.endsWith(ending))
  return names.map((name) => readFileSync(path.join(root, folder, name), 'utf8').split('#[cfg(test)]')[0])
}

function found(texts, pattern) {
  return texts.flatMap((text) => [...text.matchAll(pattern)].map((match) => match[1]))
}

const WORD = '([A-Z]+(?:_[A-Z]+)*)'

test('the page of errors has the codes of the sources', () => {
  const sdk = sources('sdk', '.ts')
  const rust = [...sources('crates/holdfast-core/src', '.rs'), ...sources('crates/holdfast-replay/src', '.rs')]
  const codes = new Set([
    ...found(sdk, new RegExp(`code: '${WORD}'`, 'g')),
    ...found(sdk, new RegExp(`EmbeddedPostgresError\\(\\s*'${WORD}'`, 'g')),
    // Reasons of signals, and the codes of wrapped errors.
    ...found(sdk, new RegExp(`: \\['${WORD}', '`, 'g')),
    ...found(sdk, new RegExp(`wrapping\\(payload, '${WORD}'\\)`, 'g')),
    ...found(rust, new RegExp(`Self::[A-Za-z]+ => "${WORD}"`, 'g')),
    ...found(rust, new RegExp(`(?:error_payload|ErrorPayload::new|Self::new)\\(\\s*"[A-Za-z]+",\\s*"${WORD}"`, 'g')),
  ])
  const expected = [...codes].filter((code) => !code.startsWith('HOLDFAST_')).sort()
  const page = readFileSync(path.join(root, 'docs/errors.md'), 'utf8')
  const rows = page.split('\n').filter((line) => line.startsWith('| `'))
  const told = new Set(rows.flatMap((line) => found([line.split('|')[1]], new RegExp(`\`${WORD}\``, 'g'))))
  assert.deepEqual([...told].sort(), expected)
})
