import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { promisify } from 'node:util'
import { unusedPort } from '@berth/egress/testing/loopback-server.ts'
import { retry } from '@berth/runtime/async/retry.ts'
import { exists } from '@berth/runtime/files/exists.ts'
import { createServerCertificate } from '@berth/server/testing/server-certificate.ts'
import { findKubelet } from '../../e2e/testing/cluster.ts'

const run = promisify(execFile)
const cache = process.env.BERTH_KUBERNETES_CACHE ?? join(homedir(), '.cache/kube-1.37.2')
const traefik = join(cache, 'traefik')
const definitions = join(cache, 'gateway-api')
/** The only name that resolves everywhere. The routes have it as their host, so they do not serve 127.0.0.1. */
const host = 'localhost'
const secretName = 'public-certificate'
const gatewayName = 'public'
const patience = { firstPauseMilliseconds: 100, longestPauseMilliseconds: 1_000, patienceMilliseconds: 60_000 }

/** Why there is no proxy here; undefined if there is one. */
export const noProxies = (await exists(traefik))
  ? undefined
  : `${traefik} is missing: scripts/kubernetes/build-programs.sh ${cache} traefik builds it from its Go module`

/** The definitions of the Gateway API are installed in a cluster of the tests only. */
export const noGateway =
  noProxies ??
  ((await findKubelet()) === undefined ? 'installs definitions in the cluster, so needs one of its own' : undefined)

/**
 * Traefik on loopback, for one namespace: the controller of its Ingress at one port, and of its Gateway at another, both
 * with TLS. This process trusts their certificate.
 */
export class TestProxies implements AsyncDisposable {
  /** The address of the Ingress. */
  readonly ingressUrl: string
  /** The address of the HTTPRoute. */
  readonly gatewayUrl: string
  /** What it creates in the namespace, beside what the chart does. */
  readonly created = [`secret/${secretName}`]
  /** The values of the chart, for `--set-string` of helm. */
  readonly values: Readonly<Record<string, string>>
  #log = ''
  readonly #stack = new AsyncDisposableStack()

  private constructor(namespace: string, ports: { readonly ingress: number; readonly gateway: number }) {
    this.ingressUrl = `https://${host}:${ports.ingress}`
    this.gatewayUrl = `https://${host}:${ports.gateway}`
    this.values = {
      publicUrl: this.ingressUrl,
      'ingress.className': namespace,
      'ingress.host': host,
      'ingress.tlsSecretName': secretName,
      // Only the Gateway is at the other port.
      'ingress.annotations.traefik\\.ingress\\.kubernetes\\.io/router\\.entrypoints': 'ingress',
      ...(noGateway === undefined && { 'gateway.name': gatewayName, 'gateway.host': host }),
    }
  }

  static async open(namespace: string): Promise<TestProxies> {
    const ports = { ingress: await unusedPort(), gateway: await unusedPort() }
    const proxies = new TestProxies(namespace, ports)
    try {
      await proxies.#prepare(namespace, ports)
      return proxies
    } catch (error) {
      await proxies[Symbol.asyncDispose]()
      throw error
    }
  }

  async #prepare(namespace: string, ports: { readonly ingress: number; readonly gateway: number }): Promise<void> {
    const { certificate, key } = await createServerCertificate(host)
    const trusted = getCACertificates()
    setDefaultCACertificates([...trusted, certificate])
    this.#stack.defer(() => setDefaultCACertificates(trusted))
    if (noGateway === undefined) {
      await run('kubectl', ['apply', '--server-side', '--filename', definitions])
      await run('kubectl', ['wait', '--for=condition=Established', '--timeout=60s', '--filename', definitions])
    }
    const classes = classesOf(namespace)
    this.#stack.defer(() => withInput(['delete', '--ignore-not-found', '--filename', '-'], classes))
    const resources = [...classes, secret(namespace, { certificate, key }), ...gateways(namespace, ports.gateway)]
    await withInput(['apply', '--filename', '-'], resources)
    const child = spawn(traefik, flags(namespace, ports), { stdio: ['ignore', 'pipe', 'inherit'] })
    child.stdout.on('data', (chunk) => (this.#log += chunk))
    this.#stack.defer(() => end(child))
  }

  /** The addresses of what the chart has routes for. */
  get urls(): readonly string[] {
    return noGateway === undefined ? [this.ingressUrl, this.gatewayUrl] : [this.ingressUrl]
  }

  /** Resolves when the routes of the chart are in use. */
  async ready(): Promise<void> {
    await Promise.all(
      this.urls.map((url) =>
        retry(async () => {
          const { ok, status } = await fetch(`${url}/health/ready`)
          if (!ok) throw new Error(`${url} answers ${status}; Traefik says:\n${this.#log}`)
        }, patience),
      ),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync()
  }
}

function flags(namespace: string, ports: { readonly ingress: number; readonly gateway: number }): readonly string[] {
  const entries = Object.entries(ports).map(([name, port]) => `--entrypoints.${name}.address=127.0.0.1:${port}`)
  const gateway = ['--providers.kubernetesgateway', `--providers.kubernetesgateway.namespaces=${namespace}`]
  return [
    ...entries,
    '--entrypoints.ingress.http.tls',
    '--providers.kubernetesingress',
    `--providers.kubernetesingress.namespaces=${namespace}`,
    `--providers.kubernetesingress.ingressclass=${namespace}`,
    ...(noGateway === undefined ? gateway : []),
    '--global.checknewversion=false',
    '--global.sendanonymoususage=false',
    '--log.level=ERROR',
  ]
}

/** What the Ingress and the Gateway name as their controller. */
function classesOf(name: string): readonly object[] {
  const ingress = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'IngressClass',
    metadata: { name },
    spec: { controller: 'traefik.io/ingress-controller' },
  }
  const gateway = {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'GatewayClass',
    metadata: { name },
    spec: { controllerName: 'traefik.io/gateway-controller' },
  }
  return noGateway === undefined ? [ingress, gateway] : [ingress]
}

function secret(
  namespace: string,
  { certificate, key }: { readonly certificate: string; readonly key: string },
): object {
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/tls',
    metadata: { namespace, name: secretName },
    stringData: { 'tls.crt': certificate, 'tls.key': key },
  }
}

function gateways(namespace: string, port: number): readonly object[] {
  if (noGateway !== undefined) return []
  const tls = { certificateRefs: [{ name: secretName }] }
  const listeners = [{ name: 'https', protocol: 'HTTPS', port, hostname: host, tls }]
  const metadata = { namespace, name: gatewayName }
  const spec = { gatewayClassName: namespace, listeners }
  return [{ apiVersion: 'gateway.networking.k8s.io/v1', kind: 'Gateway', metadata, spec }]
}

async function withInput(args: readonly string[], items: readonly object[]): Promise<void> {
  const running = run('kubectl', args)
  running.child.stdin?.end(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  await running
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}
