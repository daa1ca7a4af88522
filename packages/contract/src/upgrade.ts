/** A websocket of a session: clients reach it below `/s/{session}`, and the server at the agent, by the same path. */
export interface Upgrade<Name extends string = string> {
  readonly name: Name
  /** A path with a slash at its end stands for everything below it. */
  readonly path: `/${string}` | RegExp
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
  return upgrades.find((upgrade) => {
    if (upgrade.path instanceof RegExp) return upgrade.path.test(path)
    return upgrade.path.endsWith('/') ? path.startsWith(upgrade.path) : path === upgrade.path
  })
}
