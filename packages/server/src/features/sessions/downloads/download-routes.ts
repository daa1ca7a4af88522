import { getDownload, listDownloads } from '@berth/contract/downloads/download-endpoints.ts'
import type { MountForCallers } from '../../../access/mount-for-callers.ts'
import { rangeResponse } from '../../../blobs/part-content.ts'
import type { DownloadService } from './download-service.ts'
import { fileResponse } from './file-response.ts'

export function mountDownloadRoutes(mount: MountForCallers, downloads: DownloadService): void {
  mount(listDownloads, ({ caller, params }) =>
    downloads.list({ projectId: caller.projectId, session: params.id_or_name }),
  )

  mount(getDownload, async ({ caller, params: { id_or_name, name }, request: { headers } }) => {
    const reference = { projectId: caller.projectId, session: id_or_name }
    const file = await downloads.open(reference, name, headers.range)
    return 'live' in file ? fileResponse(file.live, name) : rangeResponse(file.kept, headers)
  })
}
