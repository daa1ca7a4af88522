import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node'

const run = promisify(execFile)
const label = 'berth.dev/fake-node'
/** Room for 16 million addresses, so that the address of a deleted pod is not reused soon. */
const podCidr = '100.64.0.1/10'
const podNetwork = '100.64.0.0/10'
const kwokFlags = [
  `--manage-nodes-with-label-selector=${label}=true`,
  `--cidr=${podCidr}`,
  `--kubeconfig=${process.env.KUBECONFIG}`,
  `--config=${join(import.meta.dirname, 'stages.yaml')}`,
  // The control plane considers nodes with an older lease dead.
  '--node-lease-duration-seconds=40',
]
/** The size of a large cloud machine. */
const room = { cpu: '64', memory: '512Gi', pods: '500' }

/**
 * Nodes simulated by kwok: it reports pods as running in place of their kubelets, but runs none. Their addresses lead
 * to this host. No pod is scheduled to another node meanwhile.
 */
export async function startFakeNodes(count: number): Promise<AsyncDisposable> {
  const config = new KubeConfig()
  config.loadFromDefault()
  const api = config.makeApiClient(CoreV1Api)
  await using stack = new AsyncDisposableStack()
  const { items } = await api.listNode()
  for (const name of items.map(({ metadata }) => metadata?.name ?? '')) {
    await run('kubectl', ['cordon', name])
    stack.defer(async () => void (await run('kubectl', ['uncordon', name])))
  }
  for (let number = 1; number <= count; number++) {
    const name = `fake-${number}`
    const labels = { [label]: 'true', 'kubernetes.io/hostname': name }
    await api.createNode({ body: { metadata: { name, labels }, status: { capacity: room, allocatable: room } } })
    stack.defer(async () => void (await api.deleteNode({ name })))
  }
  await run('ip', ['route', 'add', 'local', podNetwork, 'dev', 'lo'])
  stack.defer(async () => void (await run('ip', ['route', 'del', 'local', podNetwork, 'dev', 'lo'])))
  const kwok = spawn('kwok', kwokFlags, { stdio: 'ignore' })
  stack.defer(() => end(kwok))
  await run('kubectl', ['wait', '--for=condition=Ready', 'node', '--selector', label, '--timeout=60s'])
  return stack.move()
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}
