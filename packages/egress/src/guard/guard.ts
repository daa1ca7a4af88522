import type { HostAndPort } from '@berth/contract/egress/host.ts'
import { EgressFailure } from '../egress-failure.ts'
import type { HostAddresses } from './host-addresses.ts'
import type { Lookup } from './lookup.ts'
import { type Policy, type Refusal, refusalOf } from './policy.ts'

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

const maxAddresses = 16 // A name may have hundreds; nobody waits for the last one.

/** Decides where sessions may connect. A name is looked up here and nowhere else, so that it cannot change after the check. */
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
    const addresses = host.kind === 'address' ? [host.address] : await lookup(host.name)
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
}

export function refused(refusal: Refusal): EgressFailure {
  return new EgressFailure('refused', `Sessions may not connect to ${sentences[refusal]}.`)
}
