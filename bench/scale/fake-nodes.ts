import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node'

const run = promisify(execFile)
const label = 'berth.dev/fake-node'
/** Room for 16 million addresses, so that the one of a pod that is gone is not given out at once. */
const podCidr = '100.64.0.1/10'
const podNetwork = '100.64.0.0/10'
/** A large machine of a cloud. */
const room = { cpu: '64', memory: '512Gi', pods: '500' }

/**
 * Nodes that kwok says are there: it answers for their kubelets that pods run, and no pod does. Their addresses lead to
 * this host. Pods go to no other node meanwhile.
 */
export async function startFakeNodes(count: number): Promise<AsyncDisposable> {
  const config = new KubeConfig()
  config.loadFromDefault()
  const api = config.makeApiClient(CoreV1Api)
  const { items } = await api.listNode()
  for (const { metadata } of items) await run('kubectl', ['cordon', metadata?.name ?? ''])
  for (let number = 1; number <= count; number++) {
    const name = `fake-${number}`
    const status = { capacity: room, allocatable: room }
    const labels = { [label]: 'true', 'kubernetes.io/hostname': name }
    await api.createNode({ body: { metadata: { name, labels }, status } })
  }
  await run('ip', ['route', 'add', 'local', podNetwork, 'dev', 'lo'])
  const kwok = spawn(
    'kwok',
    [`--manage-nodes-with-label-selector=${label}=true`, `--cidr=${podCidr}`, `--kubeconfig=${process.env.KUBECONFIG}`],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  )
  await run('kubectl', ['wait', '--for=condition=Ready', 'node', '--selector', label, '--timeout=60s'])
  return {
    async [Symbol.asyncDispose]() {
      await end(kwok)
      for (let number = 1; number <= count; number++) await api.deleteNode({ name: `fake-${number}` })
      await run('ip', ['route', 'del', 'local', podNetwork, 'dev', 'lo'])
      for (const { metadata } of items) await run('kubectl', ['uncordon', metadata?.name ?? ''])
    },
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGTERM')
  await once(child, 'exit')
}
