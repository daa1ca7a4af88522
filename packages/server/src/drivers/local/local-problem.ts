import { once } from 'node:events'
import type { MachineId } from '@berth/contract/common/ids.ts'
import type { HostFolders } from '../../host/host-folders.ts'
import type { HostCheck } from '../../host-checks/host-check.ts'
import { namespaceChecks } from '../../host-checks/namespace-checks.ts'
import { networkCheck } from '../../host-checks/network-check.ts'
import { programPresenceChecks } from '../../host-checks/program-checks.ts'
import { trialSpec } from '../trial-spec.ts'
import { LocalMachine } from './local-machine.ts'
import { makeFolder } from './machine-folders.ts'
import { readLastLines } from './machine-log.ts'
import { removeMachine } from './remove-machine.ts'
import { launchMachine, type SandboxResources } from './sandbox/launch-machine.ts'

/** The machine with which the driver checks whether machines can be started. It has no session. */
export const trialId = 'trial' as MachineId

/** Chromium's own sandbox needs the same rights. */
const trialCommand = ['/usr/bin/unshare', '--user', '--map-root-user', '/usr/bin/true']

/** Describes in one line what prevents machines from starting and how to fix it, if anything. */
export async function findLocalProblem(folders: HostFolders, resources: SandboxResources): Promise<string | undefined> {
  const missing = await firstFailure(programPresenceChecks)
  if (missing !== undefined) return missing
  const failure = await tryMachine(folders, resources)
  if (failure === undefined) return undefined
  return (
    (await firstFailure([...namespaceChecks, networkCheck])) ?? `A machine for trial could not be started: ${failure}`
  )
}

async function firstFailure(checks: readonly HostCheck[]): Promise<string | undefined> {
  for (const { name, run } of checks) {
    const verdict = await run()
    if (verdict.state === 'failure') return `${name}: ${verdict.fact}. To mend it: ${verdict.cure}`
  }
  return undefined
}

/** Starts a machine like that of a session, with a command that exits immediately. Returns its output if it failed. */
async function tryMachine(hostFolders: HostFolders, resources: SandboxResources): Promise<string | undefined> {
  const { cgroups, trash } = resources
  const machine = new LocalMachine({
    hostFolders,
    cgroups,
    id: trialId,
    hasEgressUser: resources.egressUser !== undefined,
  })
  const remove = () => removeMachine({ machine, cgroups, trash })
  try {
    // Removes what an earlier trial left when its server was killed.
    await remove()
    await makeFolder(machine.folders.runtime, 0o711)
    const signal = AbortSignal.timeout(10_000)
    const child = await launchMachine({
      ...resources,
      machine,
      spec: trialSpec(trialId),
      command: trialCommand,
      signal,
    })
    const [exitCode] = await once(child, 'exit', { signal })
    return exitCode === 0 ? undefined : await readLastLines(machine.folders.log)
  } catch (error) {
    return (error as Error).message
  } finally {
    await remove()
  }
}
