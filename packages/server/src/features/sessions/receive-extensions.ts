import { createWriteStream } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { BerthError } from '@berth/contract/errors.ts'
import { ExtensionName, maxExtensionBytes, maxExtensionsOfSession } from '@berth/contract/extensions/extension.ts'
import { readMultipart } from '@berth/runtime/http/multipart.ts'
import { pairParts } from '@berth/runtime/http/multipart-pairs.ts'
import { validate } from '@berth/runtime/http/validate.ts'

/** An archive that has come in, whole, as a file. */
export interface NamedUpload {
  readonly name: string
  readonly path: string
  /** How the client calls its place in the list. */
  readonly label: string
}

/** Reads pairs of `extensions[i][name]` and `extensions[i][zip_file]`, in every client's spelling. */
export async function receiveNamedUploads(request: IncomingMessage, folder: string): Promise<readonly NamedUpload[]> {
  const uploads: NamedUpload[] = []
  const parts = readMultipart(request, {
    headers: request.headers,
    isFile: (path) => path.at(-1) === 'zip_file',
    maxParts: 2 * maxExtensionsOfSession,
    maxFileBytes: maxExtensionBytes,
  })
  const list = { list: 'extensions', file: 'zip_file', text: 'name', maxPairs: maxExtensionsOfSession }
  for await (const { label, text, content } of pairParts(parts, { ...list, temporaryFolder: folder })) {
    const name = validate(ExtensionName, text, `${label}.name`)
    if (uploads.some((other) => other.name === name)) {
      throw new BerthError('bad_request', { reason: `${label}.name: ${name} must come once.` })
    }
    const path = join(folder, `${uploads.length}.zip`)
    await pipeline(content, createWriteStream(path))
    uploads.push({ name, path, label })
  }
  return uploads
}
