import { matchesPath, type RoutePath } from './route.ts'

/** A websocket of a session: clients reach it below `/s/{session}`, and the server at the agent, by the same path. */
export interface Upgrade<Name extends string = string> {
  readonly name: Name
  readonly path: RoutePath
}

/** Declares a websocket. */
export function defineUpgrade<const Declared extends Upgrade>(upgrade: Declared): Declared {
  return upgrade
}

/** The websocket that is served at the path. */
export function findUpgrade<Name extends string>(
  upgrades: readonly Upgrade<Name>[],
  path: string,
): Upgrade<Name> | undefined {
  return upgrades.find((upgrade) => matchesPath(upgrade.path, path))
}
