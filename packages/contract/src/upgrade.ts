/** A WebSocket of a session. Clients open it below `/s/{session}`, and the server opens the same path at the agent. */
export interface Upgrade<Name extends string = string> {
  readonly name: Name
  /** A path that ends with a slash matches everything below it. */
  readonly path: `/${string}` | RegExp
}

export function defineUpgrade<const Declared extends Upgrade>(upgrade: Declared): Declared {
  return upgrade
}

/** Finds the WebSocket that is served at the path. */
export function findUpgrade<Name extends string>(
  upgrades: readonly Upgrade<Name>[],
  path: string,
): Upgrade<Name> | undefined {
  return upgrades.find((upgrade) => {
    if (upgrade.path instanceof RegExp) return upgrade.path.test(path)
    return upgrade.path.endsWith('/') ? path.startsWith(upgrade.path) : path === upgrade.path
  })
}
