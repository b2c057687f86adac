/** The name that somebody may have meant: the same but for case, a forgotten unit, or a few letters. */
export function nearest(given: string, known: readonly string[]): string | undefined {
  const wanted = given.toLowerCase()
  const same = known.find((each) => each.toLowerCase() === wanted || each.toLowerCase() === `${wanted}ms`)
  if (same !== undefined) return same
  // Longer names may differ more; short ones that differ in two letters are other words.
  const most = Math.min(3, Math.floor(wanted.length / 4))
  let best: string | undefined
  let least = most + 1
  for (const each of known) {
    const steps = Math.min(distance(wanted, each.toLowerCase()), distance(`${wanted}ms`, each.toLowerCase()))
    if (steps < least) [best, least] = [each, steps]
  }
  return best
}

/** How many letters must be put in, taken out or changed. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, change))
    }
    row = next
  }
  return row[b.length] ?? 0
}
