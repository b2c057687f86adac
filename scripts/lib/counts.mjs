// Reads the closing lines of the test runners, so that one total can be told at the end.

/** Sums of what the runners' closing lines say: `{ passed, failed }`. */
export function countTests(output) {
  const plain = output.replace(/\u001b\[[0-9;]*m/g, '')
  let passed = 0
  let failed = 0
  const add = (pattern, count) => {
    for (const match of plain.matchAll(pattern)) count(match.groups)
  }
  add(/^\s*Summary \[.*?\]\s+\d+(?:\/\d+)? tests? run: (?<passed>\d+) passed(?:[^,\n]*)(?:, (?<failed>\d+) failed)?/gm, (groups) => {
    passed += Number(groups.passed)
    failed += Number(groups.failed ?? 0)
  })
  add(/^test result: \w+\. (?<passed>\d+) passed; (?<failed>\d+) failed/gm, (groups) => {
    passed += Number(groups.passed)
    failed += Number(groups.failed)
  })
  add(/^(?:ℹ|#) pass (?<passed>\d+)$/gm, (groups) => (passed += Number(groups.passed)))
  add(/^(?:ℹ|#) (?:fail|cancelled) (?<failed>\d+)$/gm, (groups) => (failed += Number(groups.failed)))
  return { passed, failed }
}
