import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls'
import { identityFiles, podPorts, podProtocols } from '@berth/contract/agent/machine/machine-pod.ts'
import { CoreV1Api, KubeConfig, makeInformer, type V1Pod, type V1Secret } from '@kubernetes/client-node'
import { createFakePodPrograms } from './fake-pod-programs.ts'

/*
 * Everything that listens in the pods of kwok's nodes: `node packages/server/src/testing/machines/fake-pods.ts NAMESPACE`.
 * Several such processes share the connections. The addresses of the pods are routed to this host. Each connection gets
 * the identity of the machine whose pod has the address, from the pod's own Secret, so that servers speak to them as to
 * real ones.
 */

interface FakePod {
  readonly context: SecureContext
  /** In milliseconds. The same in every process. */
  readonly createdAt: number
}

const [namespace = ''] = process.argv.slice(2)
const config = new KubeConfig()
config.loadFromDefault()
const api = config.makeApiClient(CoreV1Api)
const path = `/api/v1/namespaces/${namespace}`
const podOf = new Map<string, V1Pod>()
const fakePods = new Map<string, FakePod>()
const secrets = makeInformer<V1Secret>(config, `${path}/secrets`, () => api.listNamespacedSecret({ namespace }))
const pods = makeInformer<V1Pod>(config, `${path}/pods`, () => api.listNamespacedPod({ namespace }))
pods.on('update', (pod) => {
  if (pod.status?.podIP) podOf.set(pod.status.podIP, pod)
})
pods.on('delete', ({ metadata, status }) => {
  const name = metadata?.name ?? ''
  fakePods.delete(name)
  if (status?.podIP && podOf.get(status.podIP)?.metadata?.name === name) podOf.delete(status.podIP)
})
for (const informer of [secrets, pods]) {
  informer.on('error', () => void setTimeout(() => void informer.start(), 1_000))
  await (informer as { start(): Promise<void> }).start()
}

const programs = createFakePodPrograms()
const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
  socket.on('error', () => socket.destroy())
  const pod = podAt(socket.localAddress ?? '')
  // The client retries, as with a pod whose gateway does not listen yet.
  if (!pod) return void socket.destroy()
  serve(socket, pod)
})
server.listen({ host: '0.0.0.0', port: podPorts.servers, backlog: 4_096, reusePort: true })
await once(server, 'listening')
process.stdout.write('ready\n')

function podAt(address: string): FakePod | undefined {
  const { name, creationTimestamp } = podOf.get(address)?.metadata ?? {}
  if (!name || !creationTimestamp) return undefined
  const known = fakePods.get(name)
  if (known) return known
  const data = secrets.get(name, namespace)?.data
  if (!data) return undefined
  const file = (key: string) => Buffer.from(data[key] ?? '', 'base64')
  const context = createSecureContext({
    ca: file(identityFiles.authority),
    cert: file(identityFiles.certificate),
    key: file(identityFiles.key),
    minVersion: 'TLSv1.3',
  })
  // A list gives dates, a watch gives texts.
  const pod = { context, createdAt: new Date(creationTimestamp).getTime() }
  fakePods.set(name, pod)
  return pod
}

function serve(socket: Socket, { context, createdAt }: FakePod): void {
  const client = new TLSSocket(socket, {
    isServer: true,
    secureContext: context,
    requestCert: true,
    rejectUnauthorized: true,
    ALPNProtocols: Object.values(podProtocols),
  })
  client.on('error', () => client.destroy())
  client.once('secure', () => programs.serve(client, client.alpnProtocol || '', createdAt))
}
