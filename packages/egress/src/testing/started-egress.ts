import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EgressRoute } from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { createLogger } from '@berth/runtime/process/logger.ts'
import { Guard } from '../guard/guard.ts'
import { HostAddresses } from '../guard/host-addresses.ts'
import type { Lookup } from '../guard/lookup.ts'
import { parsePolicy } from '../guard/policy.ts'
import { Machines } from '../machines.ts'

export const silentLogger = createLogger({ name: 'egress', level: 'silent', json: true })

/** By no proxy. */
export const directly: EgressSettings = { private_hosts: [], routes: [] }

/** Names that are known nowhere: no test asks a name server. */
const noNames: Lookup = async () => []

export interface StartedEgress extends AsyncDisposable {
  /** The proxy of `machine-1`. */
  readonly socketPath: string
  readonly folder: string
  readonly machines: Machines
  allow(...entries: string[]): void
  /** Changes by which way the machine's connections leave. */
  change(settings: EgressSettings, gently?: EgressRoute['gently']): Promise<void>
}

/** Egress in this process, with one machine. */
export async function startEgress({
  allow = [],
  own = [],
  lookup = noNames,
  settings = directly,
}: {
  settings?: EgressSettings
  allow?: string[]
  own?: string[]
  lookup?: Lookup
} = {}): Promise<StartedEgress> {
  const folder = await mkdtemp(join(tmpdir(), 'berth-egress-'))
  const guard = new Guard({ hostAddresses: new HostAddresses(systemClock) })
  const machines = new Machines({ guard, lookup, logger: silentLogger })
  const socketPath = join(folder, 'machine-1.sock')
  guard.setPolicy(parsePolicy({ allow, own_addresses: own }))
  await machines.put('machine-1', { socket_path: socketPath, socket_mode: 0o600, settings })

  return {
    socketPath,
    folder,
    machines,
    change: (changed, gently) =>
      machines.put('machine-1', { socket_path: socketPath, socket_mode: 0o600, settings: changed, gently }),
    allow: (...entries) => guard.setPolicy(parsePolicy({ allow: entries, own_addresses: own })),
    async [Symbol.asyncDispose]() {
      await machines.close()
      await rm(folder, { recursive: true })
    },
  }
}
