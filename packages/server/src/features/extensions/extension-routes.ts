import type { Extension } from '@berth/contract/extensions/extension.ts'
import {
  deleteExtension,
  downloadExtension,
  downloadFromChromeStore,
  getExtension,
  listExtensions,
  uploadExtension,
} from '@berth/contract/extensions/extension-endpoints.ts'
import type { MountForCallers } from '../../access/mount-for-callers.ts'
import type { TemporaryFolders } from '../../blobs/temporary-folders.ts'
import type { ChromeStoreService } from './chrome-store-service.ts'
import type { ExtensionService, StoredExtension } from './extension-service.ts'
import { receiveUpload } from './receive-upload.ts'

interface ExtensionRoutesOptions {
  readonly extensions: ExtensionService
  readonly chromeStore: ChromeStoreService
  readonly temporaryFolders: TemporaryFolders
}

export function mountExtensionRoutes(
  mount: MountForCallers,
  { extensions, chromeStore, temporaryFolders }: ExtensionRoutesOptions,
): void {
  mount(uploadExtension, async ({ caller, request }) => {
    await using folder = await temporaryFolders.make()
    return record(await extensions.upload(caller.projectId, await receiveUpload(request.raw, folder.path)))
  })

  mount(listExtensions, async ({ caller, query }) => {
    const filter = { projectId: caller.projectId, text: query.query, name: query.name }
    const page = await extensions.list(filter, query)
    return { items: page.items.map(record), hasMore: page.hasMore }
  })

  mount(downloadFromChromeStore, ({ query, signal }) => chromeStore.download(query.url, query.os, signal))

  mount(downloadExtension, ({ caller, params }) => extensions.download(caller.projectId, params.id_or_name))

  mount(getExtension, async ({ caller, params }) => record(await extensions.get(caller.projectId, params.id_or_name)))

  mount(deleteExtension, ({ caller, params }) => extensions.delete(caller.projectId, params.id_or_name))
}

function record({ id, created_at, size_bytes, name, checksum, last_used_at }: StoredExtension): Extension {
  return {
    id,
    created_at: created_at.toISOString(),
    size_bytes,
    name,
    checksum,
    last_used_at: last_used_at?.toISOString() ?? null,
  }
}
