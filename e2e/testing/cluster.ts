import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { clusterEnvironment } from './cluster-environment.ts'
import { machineOf } from './machine-of.ts'

const run = promisify(execFile)

/** Why there is no cluster to test with, or false. */
export const noCluster = 'KUBECONFIG' in clusterEnvironment ? false : 'no cluster: ./berth test --kubernetes'

export const machineSelector = 'app.kubernetes.io/name=berth-machine'

/** Runs kubectl in the namespace of the machines, and resolves with what it writes. */
export async function kubectl(...args: readonly string[]): Promise<string> {
  const namespace = clusterEnvironment.BERTH_KUBERNETES_NAMESPACE ?? 'default'
  const { stdout } = await run('kubectl', ['--namespace', namespace, ...args])
  return stdout.trim()
}

/** The pod that a session has its machine in. */
export function podOf(sessionId: string): string {
  return `berth-${machineOf(sessionId)}`
}

/** Whether the pod or its Secret is there. */
export async function isLeft(pod: string): Promise<boolean> {
  return (await kubectl('get', `pod/${pod}`, `secret/${pod}`, '--ignore-not-found', '--output=name')) !== ''
}

/** Has a shell in the container run a script. Nothing is told of a container that ends with it. */
export async function inContainer(pod: string, container: 'machine' | 'egress', script: string): Promise<string> {
  return kubectl('exec', pod, `--container=${container}`, '--', '/bin/sh', '-c', script).catch(
    ({ stdout }: { readonly stdout?: string }) => stdout ?? '',
  )
}

/** Kills the programs whose command line, with spaces between its parts, fits the pattern. */
export function killByCommand(pattern: string): string {
  return `for folder in /proc/[0-9]*; do tr '\\0' ' ' <$folder/cmdline | grep -qE '${pattern}' && kill -KILL "\${folder#/proc/}"; done`
}

/** The kubelet of the node, where that is this host. */
export async function findKubelet(): Promise<number | undefined> {
  for (const name of await readdir('/proc')) {
    if (/^\d+$/.test(name) && (await readFile(`/proc/${name}/comm`, 'utf8').catch(() => '')) === 'kubelet\n') {
      return Number(name)
    }
  }
  return undefined
}
