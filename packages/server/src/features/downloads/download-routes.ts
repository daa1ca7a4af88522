import { getDownload, listDownloads } from '@berth/contract/downloads/download-endpoints.ts'
import type { MountForCallers } from '../../access/mount-for-callers.ts'
import type { DownloadService } from './download-service.ts'

export function mountDownloadRoutes(mount: MountForCallers, downloads: DownloadService): void {
  mount(listDownloads, ({ caller, params }) =>
    downloads.list({ projectId: caller.projectId, session: params.id_or_name }),
  )

  mount(getDownload, ({ caller, params, request }) =>
    downloads.open({ projectId: caller.projectId, session: params.id_or_name }, params.name, request.headers),
  )
}
