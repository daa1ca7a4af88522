import { loadExtensions } from '@berth/contract/extensions/extension-endpoints.ts'
import type { MountForCallers } from '../../../access/mount-for-callers.ts'
import type { TemporaryFolders } from '../../../blobs/temporary-folders.ts'
import type { SessionResolver } from '../records/resolve-session.ts'
import { receiveNamedUploads } from './receive-extensions.ts'
import type { SessionExtensions } from './session-extensions.ts'

interface SessionExtensionRoutesOptions {
  readonly resolver: SessionResolver
  readonly sessionExtensions: SessionExtensions
  readonly temporaryFolders: TemporaryFolders
}

export function mountSessionExtensionRoutes(
  mount: MountForCallers,
  { resolver, sessionExtensions, temporaryFolders }: SessionExtensionRoutesOptions,
): void {
  mount(loadExtensions, async ({ caller, params, request, signal }) => {
    const session = await resolver.resolve(caller, params.id_or_name)
    await using folder = await temporaryFolders.make()
    await sessionExtensions.load(session, await receiveNamedUploads(request.raw, folder.path), signal)
  })
}
