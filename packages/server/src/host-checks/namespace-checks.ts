import { readFile } from 'node:fs/promises'
import { failure, type HostCheck, ok, type Verdict } from './host-check.ts'
import { findProgram, isAllowed, runProgram } from './program.ts'

// Any unprivileged user: sessions run as one when berth runs as root.
const userWithoutRights = ['--reuid=65534', '--regid=65534', '--clear-groups', '--']

export interface NamespaceFacts {
  readonly hasSucceeded: boolean
  /** The output of the program. */
  readonly output: string
  /** Kernel settings that can forbid user namespaces, if this kernel has them. */
  readonly switches: Readonly<Record<string, string | undefined>>
  readonly isContainer: boolean
}

const kernelSwitches = [
  'kernel.apparmor_restrict_unprivileged_userns',
  'kernel.unprivileged_userns_clone',
  'user.max_user_namespaces',
] as const

/** Chromium's own sandbox does the same, so unprivileged users must be allowed to, also within berth's sandbox. */
const makeNamespace = ['unshare', '--user', '--map-root-user', 'true']

export const namespaceChecks: readonly HostCheck[] = [
  { name: 'User namespaces', run: async () => judgeNamespaces(await attempt(withoutRights(makeNamespace))) },
  {
    name: 'Sandbox',
    run: async () => {
      // Without a user namespace of its own when berth runs as root, like the driver.
      const namespaces = ['--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-net']
      const sandbox = ['bwrap', ...namespaces, '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev']
      return judgeNamespaces(await attempt([...sandbox, '--', ...withoutRights(makeNamespace)]))
    },
  },
]

/** Runs the command as a session would: never with the rights of root. */
function withoutRights(command: readonly string[]): readonly string[] {
  return process.getuid?.() === 0 ? ['setpriv', ...userWithoutRights, ...command] : command
}

async function attempt([program = '', ...args]: readonly string[]): Promise<NamespaceFacts> {
  const path = await findProgram(program)
  const result = path ? await runProgram(path, args) : { hasSucceeded: false, output: `${program} is missing` }
  return { ...result, switches: await readSwitches(), isContainer: await isInContainer() }
}

async function readSwitches(): Promise<Record<string, string | undefined>> {
  const values = kernelSwitches.map(async (name) => {
    const value = await readFile(`/proc/sys/${name.replaceAll('.', '/')}`, 'utf8').catch(() => undefined)
    return [name, value?.trim()] as const
  })
  return Object.fromEntries(await Promise.all(values))
}

export async function isInContainer(): Promise<boolean> {
  if ((await isAllowed('/.dockerenv', 0)) || (await isAllowed('/run/.containerenv', 0))) return true
  // Podman hides its file below an empty /run where the root is read-only.
  const environment = await readFile('/proc/1/environ', 'utf8').catch(() => '')
  return environment.split('\0').some((variable) => variable.startsWith('container='))
}

export function judgeNamespaces({ hasSucceeded, output, switches, isContainer }: NamespaceFacts): Verdict {
  if (hasSucceeded) return ok('allowed')

  const fact = `not allowed: ${output.split('\n', 1)[0]}`
  if (output.endsWith('is missing')) return failure(output, './berth setup')
  if (switches['kernel.unprivileged_userns_clone'] === '0') {
    return failure(fact, lastingSwitch('kernel.unprivileged_userns_clone=1'))
  }
  if (switches['user.max_user_namespaces'] === '0') {
    return failure(fact, lastingSwitch('user.max_user_namespaces=15000'))
  }
  const restriction = 'kernel.apparmor_restrict_unprivileged_userns'
  const isRestricted = switches[restriction] === '1'
  if (isContainer) {
    const onHost = isRestricted ? `, and on the host of the container: ${lastingSwitch(`${restriction}=0`)}` : ''
    return failure(fact, `start the container with ${securityOptions}${onHost}`)
  }
  if (isRestricted) return failure(fact, lastingSwitch(`${restriction}=0`))
  return failure(fact, 'allow unprivileged user namespaces on this host: its kernel or security module forbids them')
}

/** Those of compose.yaml. */
const securityOptions =
  '--security-opt seccomp=deploy/docker/seccomp.json --security-opt apparmor=unconfined --security-opt systempaths=unconfined'

function lastingSwitch(setting: string): string {
  return `echo ${setting} | sudo tee -a /etc/sysctl.d/60-berth.conf && sudo sysctl --system`
}
