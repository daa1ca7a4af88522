import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { newId } from '@berth/contract/common/ids.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import type { V1Pod } from '@kubernetes/client-node'
import { trialSpec } from '../trial-spec.ts'
import { CertificateAuthority } from './certificates.ts'
import { Cluster } from './cluster.ts'
import { podName } from './machine-pod.ts'

const namespace = 'machines'
const plentyMilliseconds = 60_000

/**
 * The parts of an API server that a pod and its Secret need: it stores pods, sends them to a watch, and counts
 * requests.
 */
class ApiServer {
  readonly requests: string[] = []
  connections = 0
  readonly #pods = new Map<string, V1Pod>()
  readonly #server = createServer((request, response) => {
    void json(request).then(
      (body) => this.#answer(`${request.method}`, `${request.url}`, body as V1Pod, response),
      () => this.#answer(`${request.method}`, `${request.url}`, undefined, response),
    )
  })
  #watch: ServerResponse | undefined
  #version = 1

  async listen(context: TestContext): Promise<string> {
    this.#server.on('connection', () => {
      this.connections += 1
    })
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    context.after(() => {
      this.#server.closeAllConnections()
      this.#server.close()
    })
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The node reports a change of the pod. */
  changePod(name: string): void {
    this.#tell('MODIFIED', this.#pods.get(name))
  }

  /** The node has ended the pod. */
  endPod(name: string): void {
    const pod = this.#pods.get(name)
    this.#pods.delete(name)
    this.#tell('DELETED', pod)
  }

  #answer(method: string, url: string, body: V1Pod | undefined, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(url, 'http://api')
    const [, kind = '', name = ''] = /\/namespaces\/\w+\/(\w+)(?:\/(.+))?$/.exec(pathname) ?? []
    response.setHeader('content-type', 'application/json')
    if (searchParams.has('watch')) {
      this.#watch = response
      response.flushHeaders()
      return
    }
    if (name || method !== 'GET') this.requests.push(`${method} ${kind}`)
    if (kind === 'pods' && method === 'POST' && body) {
      const metadata = { ...body.metadata, namespace, uid: 'uid', managedFields: [{ manager: 'berth' }] }
      const pod = { ...body, metadata, status: { phase: 'Pending' } }
      this.#pods.set(body.metadata?.name ?? '', pod)
      this.#tell('ADDED', pod)
      response.end(JSON.stringify(pod))
    } else if (kind === 'pods' && name && !this.#pods.has(name)) {
      response.writeHead(404).end(JSON.stringify({ kind: 'Status', code: 404, message: 'not found' }))
    } else if (kind === 'pods' && name) response.end(JSON.stringify(this.#pods.get(name)))
    else if (method === 'GET') {
      response.end(JSON.stringify({ metadata: { resourceVersion: '1' }, items: [...this.#pods.values()] }))
    } else response.end(JSON.stringify({ metadata: { name } }))
  }

  #tell(type: string, pod: V1Pod | undefined): void {
    this.#version += 1
    if (pod?.metadata) pod.metadata.resourceVersion = `${this.#version}`
    this.#watch?.write(`${JSON.stringify({ type, object: pod })}\n`)
  }
}

async function openCluster(api: ApiServer, context: TestContext): Promise<Cluster> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-cluster-'))
  context.after(() => rm(folder, { recursive: true }))
  const cluster = { name: 'one', cluster: { server: await api.listen(context), 'insecure-skip-tls-verify': true } }
  const config = {
    'current-context': 'one',
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
    clusters: [cluster],
    users: [{ name: 'one', user: {} }],
  }
  process.env.KUBECONFIG = join(folder, 'config')
  await writeFile(process.env.KUBECONFIG, JSON.stringify(config))
  const { certificate, key } = await CertificateAuthority.create(systemClock.now())
  const authority = await CertificateAuthority.load(certificate, new Uint8Array(key))
  const opened = await Cluster.open({
    options: {
      ...{ namespace, image: 'localhost/machine:1', runtimeClass: undefined, owner: undefined },
      ...{ seccompProfile: undefined, cpuRequest: '250m', memoryRequestMiB: undefined, pendingSeconds: 3 },
    },
    installation: { name: 'test', authority },
    serverId: 'server',
    diskBytes: 1024 ** 3,
    clock: systemClock,
    logger: undefined,
  })
  context.after(() => opened.close())
  return opened
}

test('the server stores only the used parts of a pod', async (context) => {
  const cluster = await openCluster(new ApiServer(), context)
  const spec = trialSpec(newId('machine', systemClock.now()))
  const isSeen = cluster.cache.nextChange(podName(spec.id), AbortSignal.timeout(plentyMilliseconds))

  await cluster.createPod(spec)
  await isSeen

  const { metadata, spec: known } = cluster.cache.get(podName(spec.id)) ?? assert.fail('it is not known')
  assert.equal(metadata?.managedFields, undefined)
  assert.deepEqual(Object.keys(known ?? {}), ['containers'])
  assert.deepEqual(
    known?.containers.map((container) => Object.keys(container)),
    [['name', 'resources']],
  )
})

test('requests share connections', async (context) => {
  const api = new ApiServer()
  const cluster = await openCluster(api, context)
  const id = newId('machine', systemClock.now())

  for (let round = 0; round < 10; round += 1) await cluster.readPod(id)

  // One for the watch, and two that alternate.
  assert.ok(api.connections <= 3, `${api.connections} connections`)
})

test('while a pod ends slowly, the cluster is asked a few times and not at every change', async (context) => {
  const api = new ApiServer()
  const cluster = await openCluster(api, context)
  const spec = trialSpec(newId('machine', systemClock.now()))
  const name = podName(spec.id)
  const { cache } = cluster
  const nextChange = () => cache.nextChange(name, AbortSignal.timeout(plentyMilliseconds))
  const isSeen = nextChange()
  await cluster.createPod(spec)
  await isSeen

  const begin = performance.now()
  const isGone = cluster.deletePod(spec.id, plentyMilliseconds)
  while (!api.requests.includes('DELETE pods')) await delay(5)
  for (let change = 0; change < 20; change++) {
    const hasRecentHeartbeat = nextChange()
    api.changePod(name)
    await hasRecentHeartbeat
  }
  api.endPod(name)
  await isGone

  const seconds = (performance.now() - begin) / 1_000
  const questions = api.requests.filter((request) => request === 'GET pods').length
  assert.ok(questions <= seconds + 1, `${questions} questions in ${seconds} s`)
})

test('the end of a pod is detected without the watch', async (context) => {
  const api = new ApiServer()
  const cluster = await openCluster(api, context)
  const spec = trialSpec(newId('machine', systemClock.now()))
  await cluster.createPod(spec)
  await cluster.cache.close()

  const isGone = cluster.deletePod(spec.id, plentyMilliseconds)
  while (!api.requests.includes('GET pods')) await delay(5)
  api.endPod(podName(spec.id))

  await isGone
})
