import { createWriteStream } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { BerthError } from '@berth/contract/errors.ts'
import { ExtensionName, maxExtensionBytes } from '@berth/contract/extensions/extension.ts'
import { readMultipart } from '@berth/runtime/http/multipart.ts'
import { validate } from '@berth/runtime/http/validate.ts'
import type { ExtensionUpload } from './extension-service.ts'

/** Reads the part `file` and the optional part `name`. */
export async function receiveUpload(request: IncomingMessage, folder: string): Promise<ExtensionUpload> {
  const path = join(folder, 'file.zip')
  let hasFile = false
  let name: string | undefined
  const parts = readMultipart(request, {
    headers: request.headers,
    isKnown: (path) => ['file', 'name'].includes(path.join()),
    isFile: (path) => path.join() === 'file',
    maxParts: 2,
    maxFileBytes: maxExtensionBytes,
  })
  for await (const part of parts) {
    if (part.kind === 'file') {
      if (hasFile) throw refusal('file: must be given once.')
      hasFile = true
      await pipeline(part.content, createWriteStream(path))
    } else {
      // Clients send an empty text for a name that is not set.
      name = part.text === '' ? undefined : validate(ExtensionName, part.text, 'name')
    }
  }
  if (!hasFile) throw refusal('file: is missing.')
  return { name, path }
}

function refusal(reason: string): BerthError {
  return new BerthError('bad_request', { reason })
}
