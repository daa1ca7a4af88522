import { judge, type Verdict } from './budgets.ts'
import { Figures } from './figures.ts'
import type { MeasurementName } from './measurement-names.ts'
import { measurements } from './measurements/measurements.ts'
import { startBenchPages } from './pages.ts'
import type { Service } from './services/service.ts'
import { services as startServices } from './services/services.ts'
import { currentLoad, type Surroundings, surroundings } from './surroundings.ts'

export interface BenchOptions {
  readonly names: readonly MeasurementName[]
  readonly rounds: number
  readonly maxSessions: number
  readonly idleSeconds: number
  /** Called when a measurement starts. */
  readonly onBegin: (name: MeasurementName) => void
  /** Aborts the run. */
  readonly signal: AbortSignal
}

export interface BenchReport {
  readonly figures: Figures
  /** The names of the services. The others are compared with the first. */
  readonly services: readonly string[]
  readonly verdicts: readonly Verdict[]
  readonly surroundings: Surroundings
}

/** Starts every service, measures them side by side, and stops them. */
export async function runBench({ names, onBegin, signal, ...amounts }: BenchOptions): Promise<BenchReport> {
  const loadBefore = currentLoad()
  const figures = new Figures()
  await using stack = new AsyncDisposableStack()
  const pages = stack.use(await startBenchPages())
  const services: Service[] = []
  for (const start of startServices) {
    signal.throwIfAborted()
    services.push(stack.use(await start({ pagesAddress: pages.allowed })))
  }

  const context = { services, pages, figures, ...amounts }
  const aborted = Promise.withResolvers<never>()
  signal.addEventListener('abort', () => aborted.reject(signal.reason), { once: true })
  for (const name of names) {
    onBegin(name)
    await Promise.race([measurements[name](context), aborted.promise])
  }
  const [direct = '', ...others] = services.map(({ name }) => name)
  const verdicts = judge(figures, direct, others)
  return { figures, services: [direct, ...others], verdicts, surroundings: surroundings(new Date(), loadBefore) }
}
