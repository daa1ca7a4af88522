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

const reserveSize = 3
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
await measure('cold', 'off', rounds, async () => {})
await measure('from the reserve', `headless=${reserveSize}`, Math.ceil(rounds / reserveSize), (berth) =>
  untilFilled(berth, { headless: reserveSize }),
)
print()

/** Alternates the drivers, so that other load of the host affects both. The other server stays idle meanwhile. */
async function measure(
  what: string,
  BERTH_RESERVE: string,
  turns: number,
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
  // The first create of each loads files and code.
  for (let turn = -1; turn < turns; turn += 1) {
    for (const { berth, creates, ends } of services) {
      await prepare(berth)
      await delay(quietMilliseconds)
      const times = await createAndEnd(berth, BERTH_RESERVE === 'off' ? 1 : reserveSize)
      if (turn < 0) continue
      creates.push(...times.creates)
      ends.push(...times.ends)
    }
  }
  for (const { name, creates, ends } of services) {
    figures.add(name, `create ${what}`, 'ms', creates)
    figures.add(name, `end, created ${what}`, 'ms', ends)
  }
}

/** Creates one after another, then ends all: a machine that starts or ends would slow down a create. */
async function createAndEnd(berth: Berth, count: number) {
  const [creates, ends]: [number[], number[]] = [[], []]
  const sessions = []
  for (let number = 0; number < count; number += 1) {
    sessions.push(await timed(creates, () => createSession(berth, 'headless')))
  }
  for (const session of sessions) await timed(ends, () => session.end())
  return { creates, ends }
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
