import { join } from 'node:path'
import type { HostFolders } from '../host/host-folders.ts'

/** In a folder of its own, because egress gets access to that folder and to nothing else in its parent. */
export function ownSessionSocketPath({ runtime }: Pick<HostFolders, 'runtime'>): string {
  return join(runtime, 'own-session', 'server.sock')
}
