import { StartError } from '@berth/server/start-error.ts'
import type { Command } from 'commander'
import { runChecks } from '../development/run-checks.ts'
import { testInCluster } from '../development/run-cluster-tests.ts'
import { testInContainer } from '../development/run-container-tests.ts'
import { findTestFiles, runTestFiles, type TestCounts } from '../development/run-tests.ts'
import { durationText, printLine } from '../output.ts'
import { installSystemPackages } from '../setup/install-system-packages.ts'
import { installUv } from '../setup/install-uv.ts'

export function addTestCommand(program: Command): void {
  program
    .command('test')
    .summary('run all checks and tests, or only the named ones')
    .description(
      'Without arguments, runs the same as CI: the checks of ./berth check, the tests of every package, then the ' +
        'end-to-end tests with a started berth and real browsers.',
    )
    .argument('[tests...]', 'test files, folders, or parts of their paths: run only these, without the checks')
    .option('--deep', 'run many more rounds of the tests for faults and leaks; takes about an hour')
    .option('--servers <number>', 'run the end-to-end tests against this many servers behind one address')
    .option('--clients', 'run real clients against a berth server instead, all or those named; downloads them first')
    .option('--kubernetes', 'run the tests that need a cluster, in the one of KUBECONFIG or in a temporary one')
    .option('--docker', 'build the image for one host, and run the tests of compose.yaml with Docker')
    .action(async (parts: string[], { deep, clients, docker, kubernetes, servers }: TestOptions) => {
      // Test files run in processes of their own and read this variable.
      if (deep) process.env.BERTH_DEEP = '1'
      if (docker) {
        process.exitCode = await testInContainer(parts)
        return
      }
      if (kubernetes) {
        process.exitCode = await testInCluster(parts)
        return
      }
      if (clients) {
        if (!(await testClients(parts))) process.exitCode = 1
        return
      }
      if (servers !== undefined) process.env.BERTH_TEST_SERVERS = serverCount(servers)
      const hasPassed = await test(parts)
      if (!hasPassed) process.exitCode = 1
    })
}

interface TestOptions {
  readonly deep?: boolean
  readonly clients?: boolean
  readonly docker?: boolean
  readonly kubernetes?: boolean
  readonly servers?: string
}

function serverCount(text: string): string {
  if (/^[1-9]$/.test(text)) return text
  throw new StartError('--servers must be a number from 1 to 9', 64)
}

/** Separate from the other tests, because it downloads its clients and takes minutes. */
async function testClients(names: readonly string[]): Promise<boolean> {
  const { runClients } = await import('../../../../e2e/clients/run-clients.ts')
  await installSystemPackages({ demand: 'required', withTests: true })
  const results = await runClients({
    names,
    onBegin: ({ name, version }) => printLine(`${name} ${version}`),
    onResult: ({ outcome, reason }) => process.stdout.write(`${outcome}${reason && `: ${reason}`}\n`),
  })
  const counts = { passed: 0, failed: 0, skipped: 0 }
  for (const { outcome } of results) counts[outcome] += 1
  process.stdout.write(`clients: ${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped\n`)
  return counts.failed === 0 && counts.passed > 0
}

async function test(parts: readonly string[]): Promise<boolean> {
  const start = performance.now()
  await installSystemPackages({ demand: 'required', withTests: true })
  await installUv({ demand: 'required' })
  const files = await findTestFiles(parts)

  const isClean = parts.length > 0 || (await runChecks())
  const counts = await runTestFiles(files, { repeatFailed: parts.length === 0 })

  process.stdout.write(`\n${summary(counts, isClean, durationText(performance.now() - start))}\n`)
  return isClean && counts.failed === 0 && counts.passed > 0
}

/** The last line is the one that CI systems read. */
function summary({ passed, failed, skipped, flaky }: TestCounts, isClean: boolean, duration: string): string {
  const checks = isClean ? '' : 'The checks of the source FAILED, see above.\n'
  const failedOnce = flaky.map((file) => `FLAKY: ${file} failed once, see above. Find the race.\n`).join('')
  return `${checks}${failedOnce}Total time: ${duration}.\ntests: ${passed} passed, ${failed} failed, ${skipped} skipped`
}
