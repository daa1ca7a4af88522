import { loadExtensions } from '@berth/contract/extensions/extension-endpoints.ts'
import type { MountForCallers } from '../../access/mount-for-callers.ts'
import type { TemporaryFolders } from '../../blobs/temporary-folders.ts'
import { receiveNamedUploads } from './receive-extensions.ts'
import type { SessionExtensions } from './session-extensions.ts'
import type { SessionService } from './session-service.ts'

interface SessionExtensionRoutesOptions {
  readonly sessions: SessionService
  readonly sessionExtensions: SessionExtensions
  readonly temporaryFolders: TemporaryFolders
}

export function mountSessionExtensionRoutes(
  mount: MountForCallers,
  { sessions, sessionExtensions, temporaryFolders }: SessionExtensionRoutesOptions,
): void {
  mount(loadExtensions, async ({ caller, params, request, signal }) => {
    const session = await sessions.get(caller.projectId, params.id_or_name, false)
    await using folder = await temporaryFolders.make()
    await sessionExtensions.load(session, await receiveNamedUploads(request.raw, folder.path), signal)
  })
}
