import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { StartError } from '@berth/server/start-error.ts'
import { checkoutFolder, durationText, printLine } from '../output.ts'
import { runProgram } from './run-program.ts'
import { findTestFiles } from './run-tests.ts'

const imageVariable = 'BERTH_TEST_KUBERNETES_IMAGE'
/** The chart is tested if this is set too; cluster.sh sets the address by which pods reach this host. */
const serverImageVariable = 'BERTH_TEST_KUBERNETES_SERVER_IMAGE'
/** With end-to-end tests that pass in a cluster: docs/kubernetes.md names the others. */
const clusterTests = [
  'kubernetes',
  ...[
    ...['attack/pod', 'bidi', 'cdp', 'cdp-keep-alive', 'computer', 'devtools', 'discovery', 'downloads', 'filesystem'],
    ...['live-view', 'live-view-input', 'logs', 'operations', 'page', 'playwright', 'pools', 'printing'],
    ...['repl', 'retries', 'webdriver', 'webmcp'],
  ].map((name) => `e2e/${name}.test.ts`),
]
/** These kill processes of machines, which takes a node on this host. */
const ownClusterTests = ['extensions', 'profiles', 'replays', 'telemetry'].map((name) => `e2e/${name}.test.ts`)
/** Tests the Ingress too if there is Traefik. */
const chartTest = 'scripts/kubernetes/chart-install.browser.test.ts'
/** Built by scripts/kubernetes/build-programs.sh. */
const nodePrograms = [
  ...['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kube-proxy', 'kubelet', 'kubectl'],
  ...['containerd', 'containerd-shim-runc-v2', 'ctr', 'runc', 'etcd', 'helm', 'kwok', 'kube-router'],
]

/**
 * Runs the tests that need a cluster and resolves with their exit code. The cluster of KUBECONFIG must already have the
 * machine image. Without KUBECONFIG, it builds the image and runs the tests in a temporary cluster.
 */
export async function testInCluster(parts: readonly string[]): Promise<number> {
  const standard = process.env.KUBECONFIG === undefined ? [...clusterTests, ...ownClusterTests] : clusterTests
  const chosen = parts.length > 0 ? parts : standard
  const tests = ['test', ...chosen]
  const berth = join(checkoutFolder, 'berth')
  if (process.env.KUBECONFIG !== undefined) {
    const image = process.env[imageVariable]
    if (image === undefined) {
      throw new StartError(
        `with KUBECONFIG, set ${imageVariable} to the image of machines, which the nodes can pull`,
        64,
      )
    }
    return runProgram(berth, tests, { variables: withImage(image) })
  }
  const { BERTH_KUBERNETES_CACHE, HOME = '', PATH = '' } = process.env
  const missing = await missingPrograms(BERTH_KUBERNETES_CACHE ?? join(HOME, '.cache/kube-1.37.2'), PATH)
  if (missing !== undefined) {
    printLine(`skipping tests that need a cluster: ${missing}`)
    return runProgram(berth, tests)
  }
  if (process.geteuid?.() !== 0) {
    throw new StartError('./berth test --kubernetes needs root to start a cluster, or KUBECONFIG', 69)
  }
  printLine('building the images: takes five minutes, and less on the same day')
  const start = performance.now()
  const code = await runProgram(join(checkoutFolder, 'scripts/images/build-images.sh'), [])
  if (code !== 0) return code
  printLine(`the images took ${durationText(performance.now() - start)}`)
  const archive = (name: string) => ['--image', join(checkoutFolder, `dist/images/berth-${name}.tar`)]
  const cluster = join(checkoutFolder, 'scripts/kubernetes/cluster.sh')
  process.env[serverImageVariable] = 'localhost/berth-server:dev'
  const traefik = (await findTestFiles(chosen)).includes(chartTest) ? ['--traefik'] : []
  const args = [...traefik, ...archive('machine'), ...archive('server'), berth, ...tests]
  const result = await runProgram(cluster, args, { variables: withImage('localhost/berth-machine:dev') })
  printLine(`images, cluster and tests took ${durationText(performance.now() - start)}`)
  return result
}

/** Why the programs of a node do not exist and cannot be built; undefined if they can. */
export async function missingPrograms(cache: string, path: string): Promise<string | undefined> {
  const isThere = (file: string) =>
    access(file).then(
      () => true,
      () => false,
    )
  const absent = await absentOf(nodePrograms, (name) => isThere(join(cache, name)))
  const inPath = async (name: string) =>
    (await Promise.all(path.split(':').map((folder) => isThere(join(folder, name))))).includes(true)
  const tools = absent.length > 0 ? await absentOf(['go', 'gcc'], inPath) : []
  if (tools.length === 0) return undefined
  return `${cache} has no ${absent.join(', ')}, and ${tools.join(' and ')} to build them are not installed`
}

async function absentOf(names: readonly string[], isThere: (name: string) => Promise<boolean>) {
  const found = await Promise.all(names.map(isThere))
  return names.filter((_name, index) => !found[index])
}

/** The variables by which tests find the cluster. */
function withImage(image: string): Readonly<Record<string, string>> {
  return { BERTH_TEST_KUBERNETES: '1', [imageVariable]: image }
}
