import { existsSync, statSync } from 'node:fs'
import { glob, mkdtemp, readFile, rm } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { finished } from 'node:stream/promises'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { StartError } from '@berth/server/start-error.ts'
import { checkoutFolder, durationText, printLine } from '../output.ts'
import { writeBatches } from './test-batches.ts'

export interface TestCounts {
  readonly passed: number
  readonly failed: number
  readonly skipped: number
  /** Files that failed once, and passed when they ran again. */
  readonly flaky: readonly string[]
}

interface StageCounts extends Omit<TestCounts, 'flaky'> {
  readonly failedFiles: readonly string[]
  /** In milliseconds, by file. */
  readonly durations: ReadonlyMap<string, number>
}

interface Stage {
  readonly name: string
  readonly files: readonly string[]
  /** Files that share processes. */
  readonly batched: readonly string[]
  readonly batches: number
  readonly concurrency: number
  /** A module that initializes what all files share. */
  readonly setup?: string
}

const testPatterns = ['packages/*/src/**/*.test.ts', 'scripts/**/*.test.ts', 'e2e/**/*.test.ts', 'bench/**/*.test.ts']
const browserTests = /^e2e\/|^bench\/|[.]browser[.]test[.]ts$/
// These use up what all programs of the machine share: the table of open files, the processors, the kubelet.
const exclusiveTests = /^e2e\/kubernetes-node[.]|\/machine-bounds[.]/
const startBerths = /^e2e\/|^bench\//
/** Each starts several browsers, and with more files they would delay each other. */
const maxBrowserFiles = 4
/** With fewer files, each has its own process, which shows its results as they arrive. */
const minBatchedFiles = 16
// Limits how long a file that hangs, or leaves something open, can delay CI.
const silenceMinutes = { short: 4, deep: 120 }
/** A process that runs several files may take this many times as long. */
const batchFactor = 3
const setups = join(checkoutFolder, 'packages/server/src/testing')
const postgresSetup = join(setups, 'test-postgres-setup.ts')
const dataFolderSetup = join(setups, 'data-folder-setup.ts')
const borrowing = 'Berth.borrow()'
/** Of more failed files, the cause is the change and not the time at which they ran. */
const maxFlakyFiles = 3
/** A run of more files names the slowest of them. */
const slowestFiles = 10

/** Finds all test files, or those whose path is or contains one of `parts`. */
export async function findTestFiles(parts: readonly string[]): Promise<readonly string[]> {
  const all = (await Array.fromAsync(glob(testPatterns, { cwd: checkoutFolder }))).toSorted()
  if (parts.length === 0) return all
  for (const part of parts) {
    if (!all.some((file) => isSelected(file, part))) throw new StartError(`no test file matches ${part}`, 64)
  }
  return all.filter((file) => parts.some((part) => isSelected(file, part)))
}

function isSelected(file: string, part: string): boolean {
  const path = resolve(part)
  if (!existsSync(path)) return file.includes(part)
  const named = relative(checkoutFolder, path)
  return file === named || (statSync(path).isDirectory() && (named === '' || file.startsWith(`${named}/`)))
}

/**
 * Runs the files and shows the results as they arrive. Files that need the machine for themselves run last, one at a
 * time. With `repeatFailed`, up to three failed files run again at the end, each alone.
 */
export async function runTestFiles(files: readonly string[], { repeatFailed = false } = {}): Promise<TestCounts> {
  // A cluster on this host takes a part of the processors.
  const parallel = Math.ceil(availableParallelism() / (process.env.BERTH_TEST_KUBERNETES === '1' ? 2 : 1))
  const { failedFiles, durations, ...first } = await runStages(stagesOf(files, await findBorrowers(files), parallel))
  if (files.length > slowestFiles) printSlowest(durations)
  const again = failedFiles.filter((file) => files.includes(file))
  const canRepeat = again.length === failedFiles.length && again.length > 0 && again.length <= maxFlakyFiles
  if (!repeatFailed || !canRepeat) return { ...first, flaky: [] }
  printLine(`${again.join(', ')} failed and ${again.length === 1 ? 'runs' : 'run'} again`)
  const second = await runStages(stagesOf(again, new Set(), 1))
  if (second.failed > 0 || second.passed === 0) return { ...first, flaky: [] }
  return { passed: first.passed + first.failed, failed: 0, skipped: first.skipped, flaky: again }
}

async function runStages(stages: readonly Stage[]): Promise<StageCounts> {
  const total = { passed: 0, failed: 0, skipped: 0, failedFiles: new Set<string>(), durations: new Map() }
  for (const stage of stages) {
    const { passed, failed, skipped, failedFiles, durations } = await runStage(stage)
    total.passed += passed
    total.failed += failed
    total.skipped += skipped
    for (const file of failedFiles) total.failedFiles.add(file)
    for (const [file, duration] of durations) total.durations.set(file, duration)
  }
  return { ...total, failedFiles: [...total.failedFiles] }
}

function printSlowest(durations: ReadonlyMap<string, number>): void {
  const slowest = [...durations].toSorted(([, one], [, other]) => other - one).slice(0, slowestFiles)
  printLine('the slowest files:')
  for (const [file, duration] of slowest) printLine(`${durationText(duration).padStart(12)}  ${file}`)
}

/** Files that use the berth of their process. */
async function findBorrowers(files: readonly string[]): Promise<ReadonlySet<string>> {
  const borrowers = await Promise.all(
    files.map(async (file) => {
      const isBorrower = file.startsWith('e2e/') && (await readFile(inCheckout(file), 'utf8')).includes(borrowing)
      return isBorrower ? [file] : []
    }),
  )
  return new Set(borrowers.flat())
}

export function stagesOf(files: readonly string[], borrowers: ReadonlySet<string>, parallel: number): readonly Stage[] {
  const withoutBrowsers = files.filter((file) => !browserTests.test(file))
  const withBrowsers = files.filter((file) => browserTests.test(file))
  const stages = [
    {
      name: 'tests without browsers',
      // Most of their time is spent loading the server.
      ...batch(withoutBrowsers, () => true, parallel * 5),
      // Many files wait.
      concurrency: Math.ceil(parallel * 2.5),
      ...(withoutBrowsers.length > 1 && { setup: postgresSetup }),
    },
    {
      name: 'tests with browsers',
      ...batch(
        withBrowsers.filter((file) => !exclusiveTests.test(file)),
        (file) => borrowers.has(file),
        parallel * 2,
      ),
      // More than processors, because some files wait.
      concurrency: Math.min(parallel * 2, maxBrowserFiles),
      ...setupForBerths(withBrowsers),
    },
    {
      name: 'tests that need the machine for themselves',
      ...batch(
        withBrowsers.filter((file) => exclusiveTests.test(file)),
        () => false,
        0,
      ),
      concurrency: 1,
    },
  ]
  return stages.filter(({ files, batched }) => files.length + batched.length > 0)
}

/** Setup that speeds up every berth after the first. */
function setupForBerths(files: readonly string[]): Pick<Stage, 'setup'> {
  return files.filter((file) => startBerths.test(file)).length > 1 ? { setup: dataFolderSetup } : {}
}

/** Files share processes if there are many. */
function batch(
  files: readonly string[],
  canShare: (file: string) => boolean,
  batches: number,
): Pick<Stage, 'files' | 'batched' | 'batches'> {
  const batched = files.filter(canShare)
  if (batched.length < minBatchedFiles) return { files, batched: [], batches: 0 }
  return { files: files.filter((file) => !canShare(file)), batched, batches }
}

async function runStage({ name, files, batched, batches, concurrency, setup }: Stage): Promise<StageCounts> {
  printLine(`${name}: ${files.length + batched.length} files, ${concurrency} processes at a time`)
  const folder = await mkdtemp(join(tmpdir(), 'berth-tests-'))
  const counts = { passed: 0, failed: 0, skipped: 0 }
  const failedFiles: string[] = []
  const durations = new Map<string, number>()
  const stop = new AbortController()
  const minutes = process.env.BERTH_DEEP === '1' ? silenceMinutes.deep : silenceMinutes.short
  const message = `no output for ${minutes} minutes: a test hangs, or its file has left something open`
  const limitMilliseconds = minutes * 60_000
  const silence = setTimeout(() => stop.abort(new Error(message)), limitMilliseconds)
  const tests = run({
    // The longest first.
    files: [...(await writeBatches(batched, { count: batches, folder })), ...files.map(inCheckout)],
    concurrency,
    ...(setup !== undefined && { globalSetupPath: setup }),
    timeout: batched.length === 0 ? limitMilliseconds : batchFactor * limitMilliseconds,
    cwd: checkoutFolder,
    signal: stop.signal,
  })
  tests.on('data', () => silence.refresh())
  tests.on('test:fail', ({ file = '', details }) => {
    // The suite that a batch has for a file fails with the tests of the file.
    const isBySubtests = (details.error as { failureType?: string }).failureType === 'subtestsFailed'
    if (!isBySubtests) failedFiles.push(relative(checkoutFolder, file))
  })
  tests.on('test:complete', ({ name, details }) => {
    if (batched.includes(name)) durations.set(name, details.duration_ms)
  })
  tests.on('test:summary', (result) => {
    if (result.file !== undefined) {
      const file = relative(checkoutFolder, result.file)
      if (files.includes(file)) durations.set(file, result.duration_ms)
      return
    }
    counts.passed = result.counts.passed
    counts.failed = result.counts.tests - result.counts.passed - result.counts.skipped - result.counts.todo
    counts.skipped = result.counts.skipped + result.counts.todo
  })
  const report = tests.compose(spec)
  report.pipe(process.stdout, { end: false })
  await finished(report)
  clearTimeout(silence)
  await rm(folder, { recursive: true })
  return { ...counts, failedFiles, durations }
}

function inCheckout(file: string): string {
  return join(checkoutFolder, file)
}
