import { once } from 'node:events'
import type { Socket } from 'node:net'
import { hostName, type LookupAnswer } from '@berth/contract/egress/machine-protocol.ts'
import type { MachineConnectors } from '../../connectors/machine-connectors.ts'
import type { Guard } from '../../guard/guard.ts'
import type { NameResolver } from '../../names/name-resolver.ts'
import type { AnsweredNames } from '../answered-names.ts'
import type { MachineQuota } from '../machine-quota.ts'
import { type ParsedLookup, parseLookup } from '../protocol/greeting.ts'
import { linesOf, writeLine } from '../protocol/lines.ts'

const maxUnreadBytes = 64 * 1024

export interface LookupOptions {
  readonly names: Pick<NameResolver, 'lookup'>
  readonly connectors: MachineConnectors
  readonly guard: Guard
  readonly answered: AnsweredNames
  readonly quota: MachineQuota
}

/** Answers the lookups of one connection in parallel. Settles when the connection ends. */
export async function serveLookups(socket: Socket, options: LookupOptions): Promise<void> {
  const { quota } = options
  for await (const line of linesOf(socket)) {
    const request = parseLookup(line)
    if (!request) throw new Error('a lookup is malformed')
    await quota.beginLookup()
    void answer(request, options)
      .then(
        (found) => writeLine(socket, found),
        () => socket.destroy(),
      )
      .finally(() => quota.endLookup())
    if (socket.writableLength > maxUnreadBytes) await once(socket, 'drain')
  }
}

async function answer(request: ParsedLookup, options: LookupOptions): Promise<LookupAnswer> {
  const { id, name, isFullyQualified, family } = request
  const { names, connectors, guard, answered } = options
  if (name === undefined) return { id, failed: 'name-not-found' }
  if (name === hostName && !guard.mentions(name)) return { id, failed: 'name-not-found' }
  if (guard.mentions(name) || connectors.needsName(name)) return { id, by_name: true }

  const found = await names.lookup(isFullyQualified ? `${name}.` : name, family)
  if ('failed' in found) return { id, failed: found.failed }
  // The settings may have changed during the lookup, so that the name is needed now.
  if (connectors.needsName(name)) return { id, by_name: true }
  answered.remember(name, found.addresses)
  return { id, addresses: found.addresses, ttl: found.ttl }
}
