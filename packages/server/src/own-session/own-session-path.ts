import { join } from 'node:path'
import type { HostFolders } from '../host/host-folders.ts'

/** In a folder of its own: egress is shown that folder, and nothing else of the one around it. */
export function ownSessionSocketPath({ runtime }: Pick<HostFolders, 'runtime'>): string {
  return join(runtime, 'own-session', 'server.sock')
}
