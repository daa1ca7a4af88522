import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { findUpgrade, type Upgrade } from '@berth/contract/upgrade.ts'

export type UpgradeHandler = (request: IncomingMessage, socket: Socket, head: Buffer) => void

/** Serves WebSockets by name. Paths that match none of them go to `otherwise`. */
export function mountUpgrades<Name extends string>(
  server: Server,
  upgrades: readonly Upgrade<Name>[],
  handlers: Readonly<Record<Name, UpgradeHandler>>,
  otherwise: UpgradeHandler,
): void {
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    const upgrade = findUpgrade(upgrades, request.url ?? '')
    const handler = upgrade ? handlers[upgrade.name] : otherwise
    handler(request, socket, head)
  })
}
