import type { HostAndPort } from '@berth/contract/egress/host.ts'
import { hostName } from '@berth/contract/egress/machine-protocol.ts'
import { EgressFailure } from '../egress-failure.ts'
import type { HostAddresses } from './host-addresses.ts'
import { isService, type Policy, type Refusal, refusalOf } from './policy.ts'

/** Resolves a name to its addresses in order of preference. Rejects with an EgressFailure when there are none. */
export type Lookup = (name: string) => Promise<readonly string[]>

/** An address that a session may connect to. */
export interface PermittedAddress {
  readonly address: string
  readonly port: number
  /** Whether it stays permitted if the connection turns out to reach this host itself. */
  readonly mayBeOfHost: boolean
}

const sentences: Readonly<Record<Refusal, string>> = {
  own: 'an address of the service',
  unspecified: 'the unspecified address',
  loopback: 'a loopback address',
  'link-local': 'a link-local address',
  private: 'a private address',
  multicast: 'a multicast address',
  reserved: 'a reserved address',
}

const addressesOfHostName = ['127.0.0.1', '::1']
const maxAddresses = 16 // Names can have hundreds, and callers do not wait for the last one.

/** Decides where sessions may connect. The addresses that are checked are the addresses that are connected to. */
export class Guard {
  readonly #hostAddresses: HostAddresses
  #policy: Policy = { allow: [], own: [] }

  constructor({ hostAddresses }: { hostAddresses: HostAddresses }) {
    this.#hostAddresses = hostAddresses
  }

  /** Applies to connections that are opened from now on. */
  setPolicy(policy: Policy): void {
    this.#policy = policy
  }

  /** Returns the permitted addresses of the destination in order of preference. Rejects when there are none. */
  async permit({ host, port }: HostAndPort, lookup: Lookup): Promise<readonly PermittedAddress[]> {
    const addresses = host.kind === 'address' ? [host.address] : await this.#lookup(host.name, lookup)
    if (addresses.length === 0) throw new EgressFailure('name-not-found')

    const name = host.kind === 'name' ? host.name : undefined
    const hostAddresses = this.#hostAddresses.current()
    const refusals: Refusal[] = []
    const permitted: PermittedAddress[] = []
    for (const address of addresses.slice(0, maxAddresses)) {
      const target = { name, address, port }
      const refusal = refusalOf(this.#policy, target, hostAddresses)
      if (refusal) refusals.push(refusal)
      else permitted.push({ address, port, mayBeOfHost: !refusalOf(this.#policy, target, new Set([address])) })
    }
    if (permitted.length === 0) throw refused(refusals[0] ?? 'reserved')
    return permitted
  }

  /** Returns the socket on which berth serves sessions if the destination is berth's own address. */
  ownSessionSocket(destination: HostAndPort): string | undefined {
    const { ownSessionSocket } = this.#policy
    if (ownSessionSocket === undefined) return undefined
    return isService(this.#policy, destination, this.#hostAddresses.current()) ? ownSessionSocket : undefined
  }

  /** Whether a rule refers to the name itself, whatever its addresses are. */
  mentions(name: string): boolean {
    const { own, ownSessionSocket } = this.#policy
    // The host's name with berth's port always leads to the session's own addresses, whatever address berth listens on.
    if (name === hostName && ownSessionSocket !== undefined && own.length > 0) return true
    return this.#allows(name) || own.some(({ host }) => host.kind === 'name' && host.name === name)
  }

  #allows(name: string): boolean {
    return this.#policy.allow.some((entry) => entry.kind === 'name' && entry.name === name)
  }

  /** The host's name is resolved here and only when the operator allows it. It is never sent to a name server. */
  async #lookup(name: string, lookup: Lookup): Promise<readonly string[]> {
    if (name !== hostName) return lookup(name)
    return this.#allows(name) ? addressesOfHostName : []
  }
}

export function refused(refusal: Refusal): EgressFailure {
  return new EgressFailure('refused', `Sessions may not connect to ${sentences[refusal]}.`)
}
