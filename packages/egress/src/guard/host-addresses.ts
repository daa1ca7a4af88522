import { networkInterfaces } from 'node:os'
import { parseAddress } from '@berth/contract/egress/host.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'

const maxAgeMilliseconds = 1_000

/** The addresses of the host's network interfaces, cached for a second. */
export class HostAddresses {
  readonly #clock: Clock
  #addresses: ReadonlySet<string> = new Set()
  #readAt = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  current(): ReadonlySet<string> {
    const now = this.#clock.now().getTime()
    // The absolute value matters: after the clock is set back, the cached addresses would otherwise stay valid for
    // hours.
    if (Math.abs(now - this.#readAt) > maxAgeMilliseconds) {
      this.#addresses = readAddresses()
      this.#readAt = now
    }
    return this.#addresses
  }
}

function readAddresses(): ReadonlySet<string> {
  const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
  return new Set(interfaces.map(({ address }) => parseAddress(address)).filter((address) => address !== undefined))
}
