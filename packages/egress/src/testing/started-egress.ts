import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EgressRoute } from '@berth/contract/egress/egress-endpoints.ts'
import type { EgressSettings } from '@berth/contract/egress/egress-settings.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { EgressFailure } from '../egress-failure.ts'
import type { EgressLogger } from '../egress-logger.ts'
import { Guard, type Lookup } from '../guard/guard.ts'
import { HostAddresses } from '../guard/host-addresses.ts'
import { parsePolicy } from '../guard/policy.ts'
import { Machines } from '../machines/machines.ts'
import type { NameResolver } from '../names/name-resolver.ts'
import { TestMachine } from './test-machine.ts'

/** Records messages about bugs, so that a test can assert that there were none. */
export class BugLog implements EgressLogger {
  readonly bugs: unknown[] = []

  debug(): void {}

  error({ err }: Readonly<Record<string, unknown>>): void {
    this.bugs.push(err)
  }
}

/** No proxy. */
export const directly: EgressSettings = { private_hosts: [], routes: [] }

export interface StartedEgress extends AsyncDisposable {
  readonly machine: TestMachine
  readonly socketPath: string
  readonly folder: string
  readonly machines: Machines
  readonly log: BugLog
  allow(...entries: string[]): void
  /** Changes how the machine's connections leave. */
  change(settings: EgressSettings, gently?: EgressRoute['gently']): Promise<void>
}

interface Options {
  readonly settings?: EgressSettings
  readonly allow?: string[]
  readonly own?: string[]
  readonly ownSessionSocket?: string
  /** By default no name exists, so that no test queries the host's name servers. */
  readonly lookup?: Lookup
  readonly names?: Pick<NameResolver, 'lookup' | 'addresses' | 'close'>
}

/** Runs the core of egress in this process, with one machine. */
export async function startEgress(options: Options = {}): Promise<StartedEgress> {
  const { allow = [], own = [], ownSessionSocket, lookup = async () => [], settings = directly } = options
  const folder = await mkdtemp(join(tmpdir(), 'berth-egress-'))
  const guard = new Guard({ hostAddresses: new HostAddresses(systemClock) })
  const log = new BugLog()
  const names = options.names ?? namesBy(lookup)
  const machines = new Machines({ guard, createNames: () => names, logger: log })
  const socketPath = join(folder, 'machine-1.sock')
  const setPolicy = (entries: string[]) =>
    guard.setPolicy(
      parsePolicy({
        allow: entries,
        own_addresses: own,
        ...(ownSessionSocket !== undefined && { own_session_socket: ownSessionSocket }),
      }),
    )
  setPolicy(allow)
  await machines.put('machine-1', { socket_path: socketPath, socket_mode: 0o600, settings })
  const machine = await TestMachine.open(socketPath)

  return {
    machine,
    socketPath,
    folder,
    machines,
    log,
    change: (changed, gently) =>
      machines.put('machine-1', { socket_path: socketPath, socket_mode: 0o600, settings: changed, gently }),
    allow: (...entries) => setPolicy(entries),
    async [Symbol.asyncDispose]() {
      await machines.close()
      await rm(folder, { recursive: true })
    },
  }
}

function namesBy(lookup: Lookup): Pick<NameResolver, 'lookup' | 'addresses' | 'close'> {
  return {
    async lookup(name, family) {
      const addresses = await lookup(name)
      if (addresses.length === 0) return { failed: 'name-not-found' }
      return { addresses: addresses.filter((address) => address.includes(':') === (family === 6)), ttl: 60 }
    },
    async addresses(name) {
      const addresses = await lookup(name)
      if (addresses.length === 0) throw new EgressFailure('name-not-found')
      return addresses
    },
    close() {},
  }
}
