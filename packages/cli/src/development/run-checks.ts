import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import pc from 'picocolors'
import { checkoutFolder, durationText } from '../output.ts'

interface SourceCheck {
  readonly name: string
  /** The path of a script in the checkout, and its arguments. */
  readonly command: readonly string[]
}

const biome = 'node_modules/.bin/biome'
const format = [biome, 'check', '--linter-enabled=false']
// The package `typescript` is version 6, because dependency-cruiser needs its compiler API.
// Several checkers repeat work of each other: four take twice the processor time of one.
const tsc = ['node_modules/@typescript/native/bin/tsc', '--checkers', '1']

const sourceChecks: readonly SourceCheck[] = [
  { name: 'format', command: [...format, '.'] },
  { name: 'lint', command: [biome, 'lint', '--error-on-warnings', '.'] },
  { name: 'types', command: tsc },
  // These run in browsers, with their types instead of those of Node.js.
  { name: 'types of the live view', command: [...tsc, '-p', 'packages/live-view'] },
  { name: 'types of the login page', command: [...tsc, '-p', 'packages/login-page'] },
  { name: 'types of the dashboard', command: [...tsc, '-p', 'packages/dashboard'] },
  { name: 'types of tests of the dashboard', command: [...tsc, '-p', 'packages/dashboard/tsconfig.test.json'] },
  { name: 'boundaries', command: ['node_modules/.bin/depcruise', 'packages', 'scripts', 'e2e', 'bench'] },
  { name: 'dead code', command: ['node_modules/.bin/knip'] },
  { name: 'API document', command: ['scripts/generate-openapi.ts', '--check'] },
  { name: 'list of commands', command: ['scripts/generate-cli-commands.ts', '--check'] },
  { name: 'seccomp profile', command: ['scripts/kubernetes/write-seccomp-profile.ts', '--check'] },
  { name: 'listeners', command: ['scripts/check-listeners.ts'] },
  { name: 'lists', command: ['scripts/check-lists.ts'] },
]

interface CheckResult {
  readonly name: string
  readonly hasPassed: boolean
}

/** Runs all checks in parallel and prints each result when it is available. Returns whether all passed. */
export async function runChecks(): Promise<boolean> {
  const start = performance.now()
  const results = await Promise.all(sourceChecks.map(runCheck))

  const failed = results.filter(({ hasPassed }) => !hasPassed).map(({ name }) => name)
  const duration = durationText(performance.now() - start)
  const summary =
    failed.length === 0
      ? `${results.length} checks passed in ${duration}`
      : `${failed.length} of ${results.length} checks failed in ${duration}: ${failed.join(', ')}`
  process.stdout.write(`\n${summary}\n`)
  return failed.length === 0
}

async function runCheck({ name, command }: SourceCheck): Promise<CheckResult> {
  const start = performance.now()
  const { hasPassed, output } = await runTool(command)
  const mark = hasPassed ? pc.green('passed') : pc.red('FAILED')
  const details = hasPassed ? '' : `${output.trimEnd()}\n`
  process.stdout.write(`${mark}  ${name} (${durationText(performance.now() - start)})\n${details}`)
  return { name, hasPassed }
}

/** Formats every source file and sorts its imports. */
export async function formatSources(): Promise<void> {
  const { output } = await runTool([...format, '--write', '.'])
  process.stdout.write(output)
}

async function runTool(command: readonly string[]): Promise<{ hasPassed: boolean; output: string }> {
  const child = spawn(process.execPath, command, {
    cwd: checkoutFolder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...(pc.isColorSupported && { FORCE_COLOR: '1' }) },
  })
  const [stdout, stderr, [exitCode]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { hasPassed: exitCode === 0, output: stdout + stderr }
}
