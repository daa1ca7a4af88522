import * as contract from '@berth/contract/agent/operations/fs-operations.ts'
import { EventStream, type ServedOperation, serve } from '../operations/served-operation.ts'
import { readFileInfo } from './file-info.ts'
import { deleteFile, deleteFolder, makeFolder } from './folders.ts'
import { listFolder } from './list-folder.ts'
import { movePath } from './move-path.ts'
import { setPermissions } from './permissions.ts'
import { readDiskFile } from './read-file.ts'
import { bytesOfBody } from './transfer/request-body.ts'
import { StagedFile } from './transfer/staged-file.ts'
import { Watches } from './watch/watches.ts'

/** The filesystem of the session, with the permissions of the session's user. */
export function servedFs(): readonly ServedOperation[] {
  const watches = new Watches()
  return [
    serve(contract.readFile, ({ query, request, signal }) => readDiskFile(query.path, request.headers, signal)),
    serve(contract.writeFile, ({ query: { path, mode }, request }) => writeFile(path, mode, bytesOfBody(request))),
    serve(contract.listFiles, ({ query }) => listFolder(query.path)),
    serve(contract.getFileInfo, ({ query }) => readFileInfo(query.path)),
    serve(contract.createDirectory, ({ body }) => makeFolder(body.path, body.mode)),
    serve(contract.deleteFile, ({ body }) => deleteFile(body.path)),
    serve(contract.deleteDirectory, ({ body }) => deleteFolder(body.path)),
    serve(contract.setFilePermissions, ({ body: { path, ...permissions } }) => setPermissions(path, permissions)),
    serve(contract.movePath, ({ body }) => movePath(body.src_path, body.dest_path)),
    serve(contract.downloadDirZip, async ({ query, signal }) => {
      const { zipFolder } = await import('./transfer/zip-folder.ts')
      return zipFolder(query.path, signal)
    }),
    serve(contract.uploadFiles, async ({ request }) => {
      const { uploadFiles } = await import('./transfer/upload.ts')
      await uploadFiles(request)
    }),
    serve(contract.uploadZip, async ({ request }) => {
      const { uploadArchive } = await import('./transfer/upload.ts')
      await uploadArchive(request)
    }),
    serve(contract.startFileWatch, async ({ body }) => ({ watch_id: await watches.start(body.path, body.recursive) })),
    serve(contract.streamFileEvents, ({ params, signal }) => new EventStream(watches.read(params.watch_id, signal))),
    serve(contract.stopFileWatch, ({ params }) => watches.stop(params.watch_id)),
  ]
}

async function writeFile(path: string, mode: string | undefined, bytes: AsyncIterable<Uint8Array>): Promise<void> {
  const file = await StagedFile.open({ field: 'path', path }, mode === undefined ? undefined : Number.parseInt(mode, 8))
  try {
    await file.fill(bytes)
    await file.commit()
  } finally {
    await file.discard()
  }
}
