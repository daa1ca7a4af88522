import { hostName } from '@berth/contract/egress/machine-protocol.ts'

const loopback = /^(localhost|127(\.\d+){3}|\[::1\])$/

/**
 * The form in which machines reach an address of the operator, without credentials. The host itself has another name
 * there.
 */
export function addressInMachine(address: string): string | undefined {
  const url = URL.parse(address)
  if (!url) return undefined
  if (loopback.test(url.hostname)) url.hostname = hostName
  url.username = ''
  url.password = ''
  return url.href
}
