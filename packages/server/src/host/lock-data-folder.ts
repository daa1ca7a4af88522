import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { realpath } from 'node:fs/promises'
import { createServer } from 'node:net'
import { StartError } from '../start-error.ts'

/** The exit code of a server whose data folder is used by another one. */
export const dataFolderInUseExitCode = 75

/**
 * Makes this process the only server of the data folder. The lock is an abstract unix socket, which the kernel releases
 * when the process ends for any reason, so locks are never stale.
 */
export async function lockDataFolder(dataFolder: string): Promise<{ close(): void }> {
  const name = createHash('sha256')
    .update(await realpath(dataFolder))
    .digest('hex')
  const lock = createServer((socket) => socket.destroy())
  lock.listen(`\0berth-data-folder-${name}`)
  try {
    await once(lock, 'listening')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw cause
    throw new StartError(`another berth server uses the data folder ${dataFolder}`, dataFolderInUseExitCode, { cause })
  }
  lock.unref()
  return { close: () => void lock.close() }
}
