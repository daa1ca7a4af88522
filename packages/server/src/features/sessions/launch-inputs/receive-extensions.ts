import { createWriteStream } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { BerthError } from '@berth/contract/errors.ts'
import { ExtensionName } from '@berth/contract/extensions/extension.ts'
import { readExtensionPairs } from '@berth/runtime/http/extension-pairs.ts'
import { validate } from '@berth/runtime/http/validate.ts'

/** A complete uploaded archive in a file. */
export interface NamedUpload {
  readonly name: string
  readonly path: string
  /** The client's name for its place in the list. */
  readonly label: string
}

/** Stores each archive as a file in the folder. */
export async function receiveNamedUploads(request: IncomingMessage, folder: string): Promise<readonly NamedUpload[]> {
  const uploads: NamedUpload[] = []
  for await (const { label, text, content } of readExtensionPairs(request, folder)) {
    const name = validate(ExtensionName, text, `${label}.name`)
    if (uploads.some((other) => other.name === name)) {
      throw new BerthError('bad_request', { reason: `${label}.name: ${name} must be given once.` })
    }
    const path = join(folder, `${uploads.length}.zip`)
    await pipeline(content, createWriteStream(path))
    uploads.push({ name, path, label })
  }
  return uploads
}
