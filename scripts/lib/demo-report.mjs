// What the demo prints at its end: a small table, what failed, and how to look at the data oneself.

/** Prints the report of a run. */
export function printReport({ figures, failures, holds }, database, say) {
  const rows = [
    ['files', figures.files, ''],
    ['steps', figures.steps, 'read, hash and compress, index; what cannot be read has no second step'],
    ['kills', figures.kills, `SIGKILL with ${figures.inFlight} steps done but not recorded`],
    ['repeated', figures.repeated, 'steps run again because of the kill'],
    ['lost', figures.lost, 'files that are not in the index'],
    ['doubled', figures.doubled, 'files that are in the index more than once'],
    ['seconds', figures.seconds, ''],
  ]
  const width = Math.max(...rows.map(([, value]) => String(value).length))
  say.write('\n')
  for (const [name, value, text] of rows) say.write(`  ${name.padEnd(9)} ${String(value).padStart(width)}  ${text}`.trimEnd() + '\n')
  for (const { file, status, error } of failures.slice(0, 10)) say.write(`  ${status}: ${JSON.stringify(file)}: ${error}\n`)
  say.write(`\n${holds ? 'Every file is in the index once.' : 'THIS DOES NOT HOLD: see the table.'}\n\nLook at the data:\n`)
  const statements = [
    `select kind, count(*), sum(bytes) as bytes, sum(packed) as packed from demo.files where run = '${figures.run}' group by kind`,
    `select key, count(*), array_agg(worker) from demo.attempts where run = '${figures.run}' group by key having count(*) > 1`,
  ]
  if (process.env.HOLDFAST_DATABASE_URL) {
    for (const statement of statements) say.write(`  psql "$HOLDFAST_DATABASE_URL" -c "${statement}"\n`)
    return
  }
  for (const statement of statements) say.write(`  npm run demo -- --sql "${statement}"\n`)
  say.write(`  npm run demo -- --serve        keeps the server up, then: psql '${database.url}'\n`)
}

/** Prints the rows of a query as a table; of several statements those of the last. */
export function printRows(result) {
  const { fields, rows } = Array.isArray(result) ? result.at(-1) : result
  const header = (fields ?? []).map(({ name }) => name)
  if (header.length === 0) return console.log('done')
  const table = [header, ...rows.map((row) => header.map((name) => shown(row[name])))]
  const widths = header.map((_, column) => Math.max(...table.map((line) => line[column].length)))
  const print = (line) => console.log(line.map((text, column) => text.padEnd(widths[column])).join('  ').trimEnd())
  print(header)
  console.log(widths.map((width) => '-'.repeat(width)).join('  '))
  for (const line of table.slice(1)) print(line)
  console.log(`(${rows.length} rows)`)
}

function shown(value) {
  if (value === null || value === undefined) return ''
  if (value instanceof Date) return value.toISOString()
  return typeof value === 'object' ? JSON.stringify(value) : String(value).replaceAll('\n', '\\n')
}
