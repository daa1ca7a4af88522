import { lookup as lookUp } from 'node:dns'
import type { LookupFunction } from 'node:net'
import { addressKind, translatedAddress } from '@berth/contract/egress/address-kind.ts'
import type { AllowEntry } from '@berth/contract/egress/allow-list.ts'
import { parseHost } from '@berth/contract/egress/host.ts'
import ipaddr from 'ipaddr.js'

/**
 * Decides where the server may connect for its callers: to public addresses, and to those that the operator permits.
 */
export class OutboundGuard {
  readonly #allowed: readonly AllowEntry[]

  constructor(allowed: readonly AllowEntry[]) {
    this.#allowed = allowed
  }

  /** Why nothing may be sent to the URL, as far as is known without resolving its name. Undefined if it may be sent. */
  refusalOf(text: string): string | undefined {
    const { hostname } = new URL(text)
    const host = parseHost(hostname)
    if (!host) return 'must name a host'
    const isPermitted =
      host.kind === 'address'
        ? this.#permits(undefined, host.address, portOf(text))
        : !/(^|\.)localhost$/.test(host.name) || this.#isNamed(host.name, portOf(text))
    return isPermitted ? undefined : 'must lead to a public address'
  }

  /** Resolves a name for a connection to the URL. The checked addresses are the ones that are connected to. */
  lookupFor(text: string): LookupFunction {
    const port = portOf(text)
    return (hostname, options, done) => {
      lookUp(hostname, { ...options, all: true }, (error, found) => {
        if (error) return done(error, '', 0)
        const permitted = found.filter(({ address }) => this.#permits(hostname, address, port))
        const first = permitted[0]
        if (!first) return done(Object.assign(new Error('the address is not public'), { code: 'EACCES' }), '', 0)
        if (options.all) (done as unknown as (error: null, addresses: typeof permitted) => void)(null, permitted)
        else done(null, first.address, first.family)
      })
    }
  }

  #permits(name: string | undefined, address: string, port: number): boolean {
    const reached = translatedAddress(address)
    if (addressKind(reached) === 'public') return true
    if (name !== undefined && this.#isNamed(name, port)) return true
    return this.#allowed.some((entry) => {
      if (entry.kind === 'address') return entry.address === reached && (entry.port ?? port) === port
      if (entry.kind !== 'range') return false
      const parsed = ipaddr.parse(reached)
      return parsed.kind() === entry.range[0].kind() && parsed.match(entry.range as [ipaddr.IPv4, number])
    })
  }

  #isNamed(name: string, port: number): boolean {
    return this.#allowed.some(
      (entry) => entry.kind === 'name' && entry.name === name.toLowerCase() && (entry.port ?? port) === port,
    )
  }
}

function portOf(text: string): number {
  const { port, protocol } = new URL(text)
  return Number(port || (protocol === 'https:' ? 443 : 80))
}
