/**
 * Which activities a runtime takes, by tag: the option in its shapes, and what crosses to the engine.
 */
import { invalidOption } from './option-errors.js'

/**
 * Which activities a runtime takes: only those without a tag (`'defaultOnly'`), all (`'any'`), none (`'none'`), only those
 * with one of 1 to 5 tags, or those without a tag and those with one of these. `'tags'` and `'defaultAnd'` take their list
 * from `workerTagFilterTags`.
 */
export type WorkerTagFilter =
  | 'defaultOnly'
  | 'any'
  | 'none'
  | 'tags'
  | 'defaultAnd'
  | { readonly tags: readonly string[] }
  | { readonly defaultAnd: readonly string[] }

/** The filter as it crosses. */
export interface NativeTagFilter {
  workerTagFilter?: string
  workerTagFilterTags?: string[]
}

const WORDS = ['defaultOnly', 'any', 'none', 'tags', 'defaultAnd']
const WITH_LIST = ['tags', 'defaultAnd']

/** As many index look-ups does a claim make. */
const MAX_TAGS = 5
const MAX_TAG_BYTES = 256

const RULE = `one of ${WORDS.map((word) => JSON.stringify(word)).join(', ')}, or { tags: [...] } or { defaultAnd: [...] }`
const LIST_RULE = `a list of 1 to ${MAX_TAGS} tags, each a text of 1 to ${MAX_TAG_BYTES} bytes`

/** Checks the filter and its list together. */
export function checkTagFilter(filter: unknown, list: unknown): NativeTagFilter {
  if (filter === undefined) {
    if (list !== undefined) throw invalidOption('workerTagFilterTags', list, "given only with workerTagFilter 'tags' or 'defaultAnd'")
    return {}
  }
  const [mode, tags] = parts(filter, list)
  if (!WITH_LIST.includes(mode)) {
    if (tags !== undefined) throw invalidOption('workerTagFilterTags', tags, `absent with workerTagFilter '${mode}'`)
    return { workerTagFilter: mode }
  }
  return { workerTagFilter: mode, workerTagFilterTags: checkTags(tags, filter) }
}

function parts(filter: unknown, list: unknown): [string, unknown] {
  if (typeof filter === 'string' && WORDS.includes(filter)) return [filter, list]
  if (typeof filter === 'object' && filter !== null && list === undefined) {
    const [only, ...others] = Object.entries(filter)
    if (only !== undefined && others.length === 0 && WITH_LIST.includes(only[0])) return [only[0], only[1]]
  }
  throw invalidOption('workerTagFilter', filter, RULE)
}

function checkTags(tags: unknown, filter: unknown): string[] {
  const name = typeof filter === 'string' ? 'workerTagFilterTags' : 'workerTagFilter'
  const isTag = (tag: unknown): tag is string =>
    typeof tag === 'string' && tag !== '' && !tag.includes('\0') && tag.isWellFormed() && Buffer.byteLength(tag) <= MAX_TAG_BYTES
  if (!Array.isArray(tags) || tags.length === 0 || tags.length > MAX_TAGS || !tags.every(isTag)) {
    throw invalidOption(name, tags, LIST_RULE)
  }
  return [...new Set(tags)]
}

/** The filter of an environment variable's text: a word, or an object as JSON. */
export function tagFilterOfText(text: string): unknown {
  if (!text.startsWith('{')) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The list of an environment variable's text, separated by commas. */
export function tagsOfText(text: string): string[] {
  return text.split(',').map((tag) => tag.trim())
}
