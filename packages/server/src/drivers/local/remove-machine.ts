import type { Cgroups } from './cgroups.ts'
import type { LocalMachine } from './local-machine.ts'
import { removeTree } from './machine-folders.ts'
import { releaseUser } from './machine-user.ts'
import { settleAll } from './settle-all.ts'

export interface RemoveOptions {
  readonly machine: LocalMachine
  readonly cgroups: Cgroups
  readonly closeRoute: () => Promise<void>
}

/**
 * Ends a machine and removes all of it, in whatever state it is; what is gone already is fine. The runtime folder goes
 * last: as long as it is there, the machine is listed, and a removal that was cut off can be done again.
 */
export async function removeMachine({ machine, cgroups, closeRoute }: RemoveOptions): Promise<void> {
  const { sessionId, folders } = machine
  await machine.kill()
  await settleAll([closeRoute(), cgroups.remove(sessionId), removeTree(folders.data)])
  // Not before its files are gone: the next machine may get this user.
  await releaseUser(folders.runtime)
  await removeTree(folders.runtime)
}
