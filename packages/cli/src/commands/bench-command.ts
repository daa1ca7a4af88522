import { Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { type MeasurementName, measurementNames } from '../../../../bench/measurement-names.ts'
import { printLine } from '../output.ts'

interface BenchFlags {
  readonly rounds: number
  readonly sessions: number
  readonly json?: boolean
}

/** Long enough to measure an idle session. */
const idleSeconds = 10

export function addBenchCommand(program: Command): void {
  program
    .command('bench')
    .summary('measure the cost of sessions, compared with bare Chromium')
    .description(
      'Starts a berth of its own and measures it beside Chromium started by hand: time, memory, processor and rates, ' +
        'against the budgets. It takes some minutes; docs/benchmarks.md explains the figures.',
    )
    .addArgument(new Argument('[names...]', 'run only these measurements').choices(measurementNames))
    .addOption(new Option('--rounds <number>', 'how often each step is repeated').argParser(wholeNumber).default(10))
    .addOption(
      new Option('--sessions <number>', 'the highest number of sessions for measurements of growth')
        .argParser(wholeNumber)
        .default(10),
    )
    .option('--json', 'print the figures as one JSON object')
    .action(bench)
}

async function bench(names: readonly MeasurementName[], { rounds, sessions, json }: BenchFlags): Promise<void> {
  const [{ runBench }, { asJson, asTables }] = await Promise.all([
    import('../../../../bench/run-bench.ts'),
    import('../../../../bench/report.ts'),
  ])
  const interrupt = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    // A second signal, which Ctrl-C and `timeout` may cause, must not end the benchmark before its sessions are closed.
    process.on(signal, () => interrupt.abort(new Error(`ended by ${signal}`)))
  }

  const running = runBench({
    names: names.length > 0 ? names : measurementNames,
    ...{ rounds, maxSessions: sessions, idleSeconds, signal: interrupt.signal },
    onBegin: (name) => printLine(`measuring ${name}`),
  })
  const report = await running.catch((error: unknown) => {
    if (!interrupt.signal.aborted) throw error
    printLine('interrupted')
  })
  if (!report) {
    process.exitCode = 1
    return
  }

  process.stdout.write(json ? asJson(report) : asTables(report))
}

function wholeNumber(text: string): number {
  if (/^[1-9]\d*$/.test(text)) return Number(text)
  throw new InvalidArgumentError('It must be a whole number above zero.')
}
