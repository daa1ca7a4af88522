import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inMachineNetwork, writeNetworkFiles } from '@berth/runtime/machine-network/network-command.ts'
import { failure, type HostCheck, ok, type Verdict } from './host-check.ts'
import { isInContainer } from './namespace-checks.ts'
import { findProgram, runProgram } from './program.ts'

export interface NetworkFacts {
  readonly hasSucceeded: boolean
  /** The output of the programs that create the network. */
  readonly output: string
  readonly isContainer: boolean
}

/** Creates only the network of a machine. */
export const networkCheck: HostCheck = {
  name: 'Network of sessions',
  run: async () => {
    const folder = await mkdtemp(join(tmpdir(), 'berth-network-'))
    try {
      const files = await writeNetworkFiles(folder)
      const namespaces = process.geteuid?.() === 0 ? ['--net'] : ['--map-root-user', '--net']
      const unshare = await findProgram('unshare')
      const args = [...namespaces, '--', ...inMachineNetwork(files, ['/bin/true'])]
      const result = unshare ? await runProgram(unshare, args) : { hasSucceeded: false, output: 'unshare is missing' }
      return judgeNetwork({ ...result, isContainer: await isInContainer() })
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  },
}

export function judgeNetwork({ hasSucceeded, output, isContainer }: NetworkFacts): Verdict {
  if (hasSucceeded) return ok('can be made')
  const [firstLine = ''] = output.split('\n')
  const fact = `cannot be made: ${firstLine}`
  if (/missing$|not found$/.test(firstLine)) return failure(fact, './berth setup')
  if (output.includes('Read-only file system')) {
    return failure(fact, 'start the container with --security-opt systempaths=unconfined')
  }
  if (/Operation not permitted|Permission denied/.test(output)) {
    return failure(fact, 'allow user namespaces first: see ./berth doctor')
  }
  const where = isContainer ? ', on the host of the container' : ''
  return failure(
    fact,
    `sudo modprobe -a ${kernelModules.join(' ')}${where}; a kernel without them has to be replaced by the distribution's own`,
  )
}

/**
 * For a pair of interfaces, packet rules, transparent listeners and packet sockets. Most kernels load them on demand.
 */
const kernelModules = ['veth', 'nf_tables', 'nft_tproxy', 'nft_reject_inet', 'af_packet']
