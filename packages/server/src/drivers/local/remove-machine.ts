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
 * Ends a machine and removes all of it, whatever its state. Missing parts are ignored. Its files are moved to the
 * trash, which is emptied in the background. The runtime folder is removed last: while it exists, the machine is
 * listed, so an interrupted removal can be repeated.
 */
export async function removeMachine({ machine, cgroups, trash }: RemoveOptions): Promise<void> {
  const { id, folders } = machine
  await machine.kill()
  await settleAll([cgroups.remove(id), trash.discard(folders.data)])
  // Only after its files are in the trash, which machines cannot access: the next machine may get this user.
  await releaseUser(folders.runtime)
  await rm(folders.runtime, { recursive: true, force: true })
}
