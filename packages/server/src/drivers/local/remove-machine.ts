import { rm } from 'node:fs/promises'
import { settleAll } from '@berth/runtime/async/settle-all.ts'
import type { Trash } from '../../host/trash.ts'
import type { Cgroups } from './cgroups/cgroups.ts'
import type { LocalMachine } from './local-machine.ts'
import { releaseUser } from './sandbox/machine-user.ts'

export interface RemoveOptions {
  readonly machine: LocalMachine
  readonly cgroups: Cgroups
  readonly trash: Trash
}

/**
 * Ends a machine and removes all of it, in whatever state it is; what is gone already is fine. Its files go to the trash,
 * which nobody waits for. The runtime folder goes last: as long as it is there, the machine is listed, and a removal
 * that was cut off can be done again.
 */
export async function removeMachine({ machine, cgroups, trash }: RemoveOptions): Promise<void> {
  const { id, folders } = machine
  await machine.kill()
  await settleAll([cgroups.remove(id), trash.discard(folders.data)])
  // Not before its files are in the trash, where no machine comes: the next machine may get this user.
  await releaseUser(folders.runtime)
  await rm(folders.runtime, { recursive: true, force: true })
}
