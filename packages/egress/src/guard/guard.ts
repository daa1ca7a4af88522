import type { HostAndPort } from '@berth/contract/egress/host.ts'
import { hostName } from '@berth/contract/egress/machine-protocol.ts'
import { EgressFailure } from '../egress-failure.ts'
import type { HostAddresses } from './host-addresses.ts'
import { isService, type Policy, type Refusal, refusalOf } from './policy.ts'

/** Finds the addresses of a name, the preferred first; rejects with an EgressFailure when there are none. */
export type Lookup = (name: string) => Promise<readonly string[]>

/** An address that a session may connect to. */
export interface PermittedAddress {
  readonly address: string
  readonly port: number
  /** Whether it stays permitted if the connection turns out to lead to this host itself. */
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
const maxAddresses = 16 // A name may have hundreds; nobody waits for the last one.

/** Decides where sessions may connect. What is looked up here is what is connected to. */
export class Guard {
  readonly #hostAddresses: HostAddresses
  #policy: Policy = { allow: [], own: [] }

  constructor({ hostAddresses }: { hostAddresses: HostAddresses }) {
    this.#hostAddresses = hostAddresses
  }

  /** Holds for connections that are opened from now on. */
  setPolicy(policy: Policy): void {
    this.#policy = policy
  }

  /** The addresses of the destination that may be connected to, the preferred first; rejects when there are none. */
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

  /** The socket on which berth serves what a session connects to at this destination, if it is berth's own. */
  ownSessionSocket(destination: HostAndPort): string | undefined {
    const { ownSessionSocket } = this.#policy
    if (ownSessionSocket === undefined) return undefined
    return isService(this.#policy, destination, this.#hostAddresses.current()) ? ownSessionSocket : undefined
  }

  /** Whether a rule speaks of the name itself, whatever its addresses. */
  mentions(name: string): boolean {
    const { own, ownSessionSocket } = this.#policy
    // By the host's name a session reaches itself at berth's port, wherever berth listens.
    if (name === hostName && ownSessionSocket !== undefined && own.length > 0) return true
    return this.#allows(name) || own.some(({ host }) => host.kind === 'name' && host.name === name)
  }

  #allows(name: string): boolean {
    return this.#policy.allow.some((entry) => entry.kind === 'name' && entry.name === name)
  }

  /** The name of the host is known here alone, and only where the operator allows it: no name server is ever asked. */
  async #lookup(name: string, lookup: Lookup): Promise<readonly string[]> {
    if (name !== hostName) return lookup(name)
    return this.#allows(name) ? addressesOfHostName : []
  }
}

export function refused(refusal: Refusal): EgressFailure {
  return new EgressFailure('refused', `Sessions may not connect to ${sentences[refusal]}.`)
}
