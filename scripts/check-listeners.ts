import { relative } from 'node:path'
import ts from 'typescript'

/*
 * Nobody handles the promise that a listener returns: when it rejects, the process ends. TypeScript accepts such a
 * listener as one that returns nothing, and no linter here checks it with types. So this script finds functions that
 * return a promise where their caller discards the result.
 */

/** The arguments of each function that are callbacks whose result is discarded. */
const callbackPositions = new Map<string, readonly [from: number, to?: number]>(
  Object.entries({
    on: [1],
    once: [1],
    addListener: [1],
    prependListener: [1],
    addEventListener: [1, 2],
    createServer: [0],
    nextTick: [0, 1],
    queueMicrotask: [0],
    setImmediate: [0, 1],
    setInterval: [0, 1],
    setTimeout: [0, 1],
    Promise: [0],
  }),
)

const root = new URL('..', import.meta.url).pathname
const config = ts.readConfigFile(`${root}tsconfig.json`, ts.sys.readFile)
const { fileNames, options } = ts.parseJsonConfigFileContent(config.config, ts.sys, root)
const program = ts.createProgram(fileNames.filter(isServing), { ...options, skipLibCheck: true })
const checker = program.getTypeChecker()

/** In a test, an unhandled rejection correctly fails the test. */
function isServing(file: string): boolean {
  return file.includes('/packages/') && !/\.test\.ts$|\/testing\//.test(file)
}

function calledName({ expression }: ts.CallExpression | ts.NewExpression): string {
  if (ts.isPropertyAccessExpression(expression)) return expression.name.text
  return ts.isIdentifier(expression) ? expression.text : ''
}

/** The callbacks whose result is discarded. */
function listenersIn(node: ts.Node): readonly ts.Expression[] {
  if (!ts.isCallExpression(node) && !ts.isNewExpression(node)) return []
  const places = callbackPositions.get(calledName(node))
  return places ? (node.arguments ?? []).slice(...places) : []
}

function returnsPromise(node: ts.Expression): boolean {
  return checker
    .getTypeAtLocation(node)
    .getCallSignatures()
    .flatMap((signature) => {
      const returned = checker.getReturnTypeOfSignature(signature)
      return returned.isUnion() ? returned.types : [returned]
    })
    .some((type) => type.symbol?.name === 'Promise')
}

/** `() => work().catch(…)`, or `then` with both callbacks. */
function handlesFailure(node: ts.Expression): boolean {
  const body = ts.isArrowFunction(node) ? node.body : undefined
  if (!body || !ts.isCallExpression(body)) return false
  const name = calledName(body)
  return name === 'catch' || (name === 'then' && body.arguments.length === 2)
}

const faults: string[] = []
for (const file of program.getSourceFiles()) {
  if (file.isDeclarationFile || !isServing(file.fileName)) continue
  const visit = (node: ts.Node): void => {
    for (const listener of listenersIn(node)) {
      if (!returnsPromise(listener) || handlesFailure(listener)) continue
      const { line } = file.getLineAndCharacterOfPosition(listener.getStart())
      faults.push(`${relative(root, file.fileName)}:${line + 1}`)
    }
    ts.forEachChild(node, visit)
  }
  visit(file)
}
for (const place of faults) {
  console.error(
    `${place}: nobody hears when the promise of this function rejects, and that ends the process. Handle it there: work().catch(…).`,
  )
}
if (faults.length > 0) process.exitCode = 1
