import { setTimeout as delay } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Berth } from '../../e2e/testing/berth.ts'
import { clusterEnvironment } from '../../e2e/testing/cluster-environment.ts'
import { Figures } from '../figures.ts'
import { createSession, untilFilled } from '../services/berth.ts'

/*
 * How long creates take with real machines in a cluster, beside the local driver on the same host:
 * `scripts/kubernetes/cluster.sh --image dist/images/berth-machine.tar env BERTH_TEST_KUBERNETES=1
 * BERTH_TEST_KUBERNETES_IMAGE=localhost/berth-machine:dev node bench/scale/run-latency.ts --rounds 10`.
 * docs/scaling.md contains the results.
 */

const reserveSize = 2
/** Node.js runs the compiled code of a create from the reserve after about as many. */
const warmUps = 12
/** Lets the processors become idle after browsers have started. */
const quietMilliseconds = 2_000
const { values } = parseArgs({ options: { rounds: { type: 'string', default: '10' } } })
const rounds = Number(values.rounds)
const drivers = [
  { name: 'local', environment: {} },
  { name: 'kubernetes', environment: clusterEnvironment },
]
if (!('BERTH_DRIVER' in clusterEnvironment)) {
  throw new Error('set KUBECONFIG, BERTH_TEST_KUBERNETES=1 and BERTH_TEST_KUBERNETES_IMAGE')
}

const figures = new Figures()
await measure('cold', 'off', 1, async () => {})
await measure('from the reserve', `headless=${reserveSize}`, warmUps, (berth) =>
  untilFilled(berth, { headless: reserveSize }),
)
print()

/** Alternates the drivers, so that other load of the host affects both. The other server stays idle meanwhile. */
async function measure(
  what: string,
  BERTH_RESERVE: string,
  notCounted: number,
  prepare: (berth: Berth) => Promise<void>,
): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const services: {
    readonly name: string
    readonly berth: Berth
    readonly creates: number[]
    readonly ends: number[]
  }[] = []
  for (const { name, environment } of drivers) {
    const berth = stack.use(
      await Berth.startOne({ environment: { ...environment, BERTH_RESERVE, BERTH_STANDBY: 'off' } }),
    )
    services.push({ name, berth, creates: [], ends: [] })
  }
  for (let turn = 0; turn < notCounted + rounds; turn += 1) {
    for (const { berth, creates, ends } of services) {
      await prepare(berth)
      await delay(quietMilliseconds)
      const isCounted = turn >= notCounted
      const session = await timed(isCounted ? creates : [], () => createSession(berth, 'headless'))
      await timed(isCounted ? ends : [], () => session.end())
    }
  }
  for (const { name, creates, ends } of services) {
    figures.add(name, `create ${what}`, 'ms', creates)
    figures.add(name, `end, created ${what}`, 'ms', ends)
  }
}

async function timed<Value>(samples: number[], work: () => Promise<Value>): Promise<Value> {
  const begin = performance.now()
  const value = await work()
  samples.push(performance.now() - begin)
  return value
}

function print(): void {
  for (const { service, name, unit, samples, p50, p95 } of figures.all) {
    process.stdout.write(`| ${service} | ${name} | ${p50.toFixed(0)} | ${p95.toFixed(0)} | ${unit} | ${samples} |\n`)
  }
}
