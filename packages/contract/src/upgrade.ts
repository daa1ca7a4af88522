import { matchesPath, type RoutePath } from './route.ts'

/** A WebSocket of a session. Clients open it below `/s/{session}`, and the server opens the same path at the agent. */
export interface Upgrade<Name extends string = string> {
  readonly name: Name
  readonly path: RoutePath
}

export function defineUpgrade<const Declared extends Upgrade>(upgrade: Declared): Declared {
  return upgrade
}

/** Finds the WebSocket that is served at the path. */
export function findUpgrade<Name extends string>(
  upgrades: readonly Upgrade<Name>[],
  path: string,
): Upgrade<Name> | undefined {
  return upgrades.find((upgrade) => matchesPath(upgrade.path, path))
}
