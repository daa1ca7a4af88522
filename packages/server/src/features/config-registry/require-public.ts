import { addressKind } from '@berth/contract/egress/address-kind.ts'
import type { AllowEntry } from '@berth/contract/egress/allow-list.ts'
import { parseHost } from '@berth/contract/egress/host.ts'
import { BerthError } from '@berth/contract/errors.ts'

/**
 * Rejects a URL whose host is evidently not public. egress checks the addresses of names, as for all sessions, and
 * permits the operator's ranges.
 */
export function requirePublic(text: string, allowed: readonly AllowEntry[]): void {
  const url = new URL(text)
  const host = parseHost(url.hostname)
  if (!host) throw refused('names no host')
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const isNamed = allowed.some((entry) => {
    if (entry.kind === 'range') return host.kind === 'address'
    const isSame = host.kind === 'name' ? entry.kind === 'name' && entry.name === host.name : isSameAddress(entry, host)
    return isSame && (entry.port === undefined || entry.port === port)
  })
  if (isNamed) return
  const isPublic = host.kind === 'name' ? !/(^|\.)localhost$/.test(host.name) : addressKind(host.address) === 'public'
  if (!isPublic) throw refused('must lead to a public address')
}

function isSameAddress(entry: AllowEntry, { address }: { readonly address: string }): boolean {
  return entry.kind === 'address' && entry.address === address
}

function refused(rule: string): BerthError {
  return new BerthError('invalid_input', { reason: `url: ${rule}.` })
}
