// Rolls the declarations of the compiled sdk up into one page, index.d.ts.
//
// Starts from what the entry exports and takes along every declaration that those mention; the order is that of the entry,
// then that of the mentions, so equal sources give equal bytes. Fails on what would not be self-contained.
import { dirname, resolve } from 'node:path'
import ts from 'typescript'

const HEAD = `// The public contract of holdfast on one page. Written by \`npm run build\` from the sources in sdk/: edit those.
/// <reference types="node" />

`

/** The text of index.d.ts for the entry declaration file. */
export function rollUp(entry) {
  const root = dirname(resolve(entry))
  const program = ts.createProgram([entry], {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ES2022,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    lib: ['lib.es2024.d.ts', 'lib.esnext.disposable.d.ts'],
    types: ['node'],
  })
  const checker = program.getTypeChecker()
  const ours = (node) => resolve(node.getSourceFile().fileName).startsWith(root)
  const target = (symbol) => (symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol)

  const entryFile = program.getSourceFile(entry)
  const isPublic = new Set(exportedInOrder(entryFile, checker).map(target))
  const order = [...isPublic]
  const seen = new Set(order)
  const names = new Map()
  const extended = basesOf(program.getSourceFiles().filter(ours))
  const parts = []
  for (const symbol of order) {
    if (names.has(symbol.name)) throw new Error(`two declarations named ${symbol.name} would meet in index.d.ts`)
    names.set(symbol.name, symbol)
    for (const declaration of symbol.declarations ?? []) {
      const statement = statementOf(declaration)
      parts.push(declarationText(statement, isPublic.has(symbol), extended))
      mentions(statement, (identifier) => {
        const found = checker.getSymbolAtLocation(identifier)
        if (found === undefined) return
        const mentioned = target(found)
        const first = mentioned.declarations?.[0]
        if (first === undefined || seen.has(mentioned) || !ours(first) || !isTopLevel(first)) return
        seen.add(mentioned)
        order.push(mentioned)
      })
    }
  }
  return `${HEAD}${parts.join('\n\n')}\n\nexport {}\n`
}

/** Names of the classes that other classes extend. */
function basesOf(files) {
  const classes = files.flatMap((file) => file.statements.filter(ts.isClassDeclaration))
  const clauses = classes.flatMap((each) => each.heritageClauses ?? []).filter((clause) => clause.token === ts.SyntaxKind.ExtendsKeyword)
  return new Set(clauses.flatMap((clause) => clause.types.map((type) => type.expression.getText())))
}

/** The symbols that the entry exports, in the order in which it writes them. */
function exportedInOrder(file, checker) {
  const symbols = []
  for (const statement of file.statements) {
    if (ts.isExportDeclaration(statement) && statement.exportClause && ts.isNamedExports(statement.exportClause)) {
      for (const element of statement.exportClause.elements) symbols.push(checker.getSymbolAtLocation(element.name))
    }
  }
  if (symbols.length !== checker.getExportsOfModule(checker.getSymbolAtLocation(file)).length) {
    throw new Error('the entry must list every export by name')
  }
  return symbols
}

function statementOf(declaration) {
  return ts.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration
}

function isTopLevel(declaration) {
  return ts.isSourceFile(statementOf(declaration).parent)
}

function mentions(node, visit) {
  if (ts.isImportTypeNode(node)) throw new Error(`${node.getSourceFile().fileName}: give this type a name: ${node.getText()}`)
  if (ts.isIdentifier(node)) visit(node)
  ts.forEachChild(node, (child) => mentions(child, visit))
}

/** A declaration with its comment, exported when public and without the words that only matter in its own file. */
function declarationText(statement, isPublic, extended) {
  const comment = ts.getJSDocCommentsAndTags(statement).map((doc) => doc.getText()).join('\n')
  const bare = withConstructor(statement, extended, statement.getText().replace(/^(export )?(declare )?/, ''))
  const declare = /^(interface|type) /.test(bare) ? '' : 'declare '
  return `${comment === '' ? '' : `${comment}\n`}${isPublic ? 'export ' : ''}${declare}${bare}`
}

/** A class whose constructor is internal must not look as if anybody could make one; its subclasses can. */
function withConstructor(statement, extended, text) {
  if (!ts.isClassDeclaration(statement) || statement.heritageClauses?.some((clause) => clause.token === ts.SyntaxKind.ExtendsKeyword)) return text
  if (statement.members.some(ts.isConstructorDeclaration)) return text
  const isAbstract = statement.modifiers?.some((modifier) => modifier.kind === ts.SyntaxKind.AbstractKeyword)
  const isBase = isAbstract || extended.has(statement.name?.text)
  return text.replace('{\n', `{\n    ${isBase ? 'protected' : 'private'} constructor();\n`)
}
