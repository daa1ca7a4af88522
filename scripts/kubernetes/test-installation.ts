import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { openReachablePort, type ReachablePort } from '@berth/server/testing/reachable-port.ts'
import { S3Server } from '@berth/server/testing/services/s3-server.ts'
import { TestPostgres } from '@berth/server/testing/test-postgres.ts'
import { AppsV1Api, CoreV1Api, KubeConfig } from '@kubernetes/client-node'
import Kernel from '@onkernel/sdk'
import { noGateway, noProxies, TestProxies } from './test-proxies.ts'

const run = promisify(execFile)
const checkout = join(import.meta.dirname, '../..')
const chart = join(checkout, 'deploy/helm/berth')
const { env } = process
const images = { server: env.BERTH_TEST_KUBERNETES_SERVER_IMAGE, machine: env.BERTH_TEST_KUBERNETES_IMAGE }
/** An address of this host that pods reach. */
const host = env.BERTH_TEST_KUBERNETES_HOST
/** In the cluster's cache if the project starts the cluster. */
const helm = join(env.BERTH_KUBERNETES_CACHE ?? join(homedir(), '.cache/kube-1.37.2'), 'helm')
const secretName = 'berth-settings'
const installLimitMilliseconds = 240_000

/** Why the chart cannot be installed here; undefined if it can. */
export const noInstall =
  env.BERTH_TEST_KUBERNETES === '1' && images.server && images.machine && host
    ? undefined
    : 'needs a cluster with both images, and BERTH_TEST_KUBERNETES_HOST: an address of this host that pods reach'

/**
 * The chart in a namespace of its own, installed by helm, with the addresses of a PostgreSQL and a bucket. Where there are
 * proxies, its public URL is that of its Ingress.
 */
export class TestInstallation implements AsyncDisposable {
  readonly namespace: string
  readonly core: CoreV1Api
  readonly apps: AppsV1Api
  readonly #stack = new AsyncDisposableStack()
  #values: readonly string[] = []
  #proxies: TestProxies | undefined
  #key: string | undefined

  private constructor(config: KubeConfig) {
    this.namespace = `berth-install-${randomBytes(3).toString('hex')}`
    this.core = config.makeApiClient(CoreV1Api)
    this.apps = config.makeApiClient(AppsV1Api)
  }

  /** Creates the namespace, and what an operator provides: a database, a bucket, and a Secret with their addresses. */
  static async open(): Promise<TestInstallation> {
    const config = new KubeConfig()
    config.loadFromDefault()
    const installation = new TestInstallation(config)
    try {
      await installation.#prepare()
      return installation
    } catch (error) {
      await installation[Symbol.asyncDispose]()
      throw error
    }
  }

  async #prepare(): Promise<void> {
    const { namespace } = this
    const postgres = await TestPostgres.open()
    this.#stack.defer(() => postgres.close())
    const s3 = await S3Server.open()
    this.#stack.defer(() => s3.close())
    const database = new URL(postgres.connectionString)
    const folder = database.searchParams.get('host') ?? decodeURIComponent(database.hostname)
    const databasePort = await this.#reach({ path: join(folder, '.s.PGSQL.5432') })
    const s3Port = await this.#reach({ host: '127.0.0.1', port: Number(new URL(s3.endpoint).port) })
    const { bucket } = await s3.bucket()
    const [user, password] = [database.username, database.password]
    await this.core.createNamespace({ body: { metadata: { name: namespace } } })
    this.#stack.defer(() => this.#removeNamespace())
    const stringData = {
      DATABASE_URL: `postgres://${user}:${password}@${host}:${databasePort}/postgres`,
      BERTH_MASTER_KEY: randomBytes(32).toString('hex'),
      AWS_ACCESS_KEY_ID: env.AWS_ACCESS_KEY_ID ?? '',
      AWS_SECRET_ACCESS_KEY: env.AWS_SECRET_ACCESS_KEY ?? '',
    }
    await this.core.createNamespacedSecret({ namespace, body: { metadata: { name: secretName }, stringData } })
    this.#proxies = noProxies === undefined ? await TestProxies.open(namespace) : undefined
    if (this.#proxies) this.#stack.use(this.#proxies)
    const values = {
      'images.server': images.server,
      'images.machine': images.machine,
      existingSecret: secretName,
      'blobs.bucket': bucket,
      'blobs.endpoint': `http://${host}:${s3Port}`,
      'server.resources.requests.cpu': '10m',
      'machines.cpuRequest': '10m',
      'machines.reserve': 'headless=1',
      ...this.#proxies?.values,
    }
    const texts = Object.entries(values).flatMap(([name, value]) => ['--set-string', `${name}=${value}`])
    const routes = `ingress.enabled=${noProxies === undefined},gateway.enabled=${noGateway === undefined}`
    this.#values = [...texts, '--set', `server.replicas=2,server.drainSeconds=5,${routes}`]
  }

  /** Resolves when helm reports that everything is ready. */
  async install(): Promise<void> {
    const flags = ['--wait', '--timeout', '3m', ...this.#values]
    await this.#helm('install', 'berth', chart, ...flags).catch(async (cause: Error) => {
      throw new Error(`helm did not install the chart; the server says:\n${await this.#log()}`, { cause })
    })
    await this.#proxies?.ready()
  }

  /** Like an update: an old server stops when a new one is ready. Resolves when all old servers are gone. */
  async replaceServers(): Promise<void> {
    const old = await this.#servers()
    await this.#kubectl('rollout', 'restart', 'deployment/berth')
    await this.#kubectl('rollout', 'status', 'deployment/berth', '--timeout', '120s')
    await this.#kubectl('wait', ...old.map((name) => `pod/${name}`), '--for=delete', '--timeout', '120s')
  }

  async uninstall(): Promise<void> {
    await this.#helm('uninstall', 'berth', '--wait', '--timeout', '2m')
  }

  /** A client of the API at an address, with the API key in the log of the first start. */
  async client(baseURL: string): Promise<Kernel> {
    this.#key ??= await this.#firstKey()
    return new Kernel({ apiKey: this.#key, baseURL })
  }

  async #firstKey(): Promise<string> {
    const log = await this.#log()
    const ready = log.split('\n').filter((line) => line.startsWith('{"event":"ready"'))
    const [key] = ready.flatMap((line) => JSON.parse(line).api_key ?? [])
    if (key === undefined) throw new Error(`no server tells the first key:\n${log}`)
    return key
  }

  async #servers(): Promise<readonly string[]> {
    const labelSelector = 'app.kubernetes.io/name=berth-server'
    const { items } = await this.core.listNamespacedPod({ namespace: this.namespace, labelSelector })
    return items.map(({ metadata }) => metadata?.name ?? '')
  }

  async #log(): Promise<string> {
    const { namespace } = this
    const logs = (await this.#servers()).map((name) => this.core.readNamespacedPodLog({ namespace, name }))
    return (await Promise.all(logs)).join('\n')
  }

  /** The address of the Service, for clients in the cluster. */
  async serviceUrl(): Promise<string> {
    const { namespace } = this
    const { spec } = await this.core.readNamespacedService({ namespace, name: 'berth' })
    return `http://${spec?.clusterIP}:${spec?.ports?.[0]?.port}`
  }

  /** Absent if there is no proxy here. */
  get proxies(): TestProxies | undefined {
    return this.#proxies
  }

  /** Names of the machine pods. */
  async machines(): Promise<readonly string[]> {
    const labelSelector = 'app.kubernetes.io/name=berth-machine'
    const { items } = await this.core.listNamespacedPod({ namespace: this.namespace, labelSelector })
    return items.map(({ metadata }) => metadata?.name ?? '')
  }

  /** Which of the addresses (`host:port`) a pod can reach from its own network. */
  async reachedFrom(
    pod: string,
    container: string,
    node: string,
    targets: readonly string[],
  ): Promise<readonly string[]> {
    const { stdout } = await this.#kubectl('exec', pod, '--container', container, '--', node, '-e', connectTo(targets))
    return JSON.parse(stdout)
  }

  /** A pod that is neither a server nor a machine. */
  async startOutsider(): Promise<AsyncDisposable & { readonly name: string }> {
    const name = 'outsider'
    const command = ['/opt/berth/bin/node', '-e', 'setInterval(() => {}, 1e6)']
    const image = `--image=${images.server}`
    await this.#kubectl('run', name, image, '--image-pull-policy=IfNotPresent', '--command', '--', ...command)
    await this.#kubectl('wait', `pod/${name}`, '--for=condition=Ready', '--timeout=60s')
    const remove = async () => void (await this.#kubectl('delete', 'pod', name, '--now'))
    return { name, [Symbol.asyncDispose]: remove }
  }

  /** Everything in the namespace except what existed before the install. */
  async remains(): Promise<readonly string[]> {
    const rights = 'serviceaccounts,roles,rolebindings,networkpolicies'
    const routes = noGateway === undefined ? 'ingresses,httproutes' : 'ingresses'
    const kinds = `all,configmaps,secrets,${rights},${routes},pdb,pvc,hpa,leases`
    const { stdout } = await this.#kubectl('get', kinds, '--output', 'name')
    const given = [`secret/${secretName}`, ...(this.#proxies?.created ?? [])]
    const ours = ['configmap/kube-root-ca.crt', 'serviceaccount/default', ...given]
    return stdout.split('\n').filter((name) => name !== '' && !ours.includes(name))
  }

  async #reach(target: Parameters<typeof openReachablePort>[1]): Promise<number> {
    const opened: ReachablePort = await openReachablePort(host ?? '', target)
    this.#stack.use(opened)
    return opened.port
  }

  #helm(...args: readonly string[]) {
    return run(helm, [...args, '--namespace', this.namespace], { timeout: installLimitMilliseconds })
  }

  #kubectl(...args: readonly string[]) {
    return run('kubectl', ['--namespace', this.namespace, ...args])
  }

  async #removeNamespace(): Promise<void> {
    await this.#kubectl('delete', 'namespace', this.namespace, '--timeout', '60s')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

/** A script for Node.js that prints which of them accept a connection. */
function connectTo(targets: readonly string[]): string {
  return `const { connect } = require('node:net')
const attempt = (target) => new Promise((resolve) => {
  const [host, port] = target.split(':')
  const socket = connect({ host, port, timeout: 3000 })
  const end = (result) => { socket.destroy(); resolve(result) }
  socket.on('connect', () => end([target])).on('error', () => end([])).on('timeout', () => end([]))
})
Promise.all(${JSON.stringify(targets)}.map(attempt)).then((found) => console.log(JSON.stringify(found.flat())))`
}
