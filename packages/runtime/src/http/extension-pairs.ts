import type { IncomingMessage } from 'node:http'
import { maxExtensionBytes, maxExtensionsOfSession } from '@berth/contract/extensions/extension.ts'
import { readMultipart } from './multipart.ts'
import { isOfPair, type Pair, pairParts } from './multipart-pairs.ts'

/** Yields the pairs of `extensions[i][name]` and `extensions[i][zip_file]` of a body, in the spelling of any client. */
export function readExtensionPairs(
  request: IncomingMessage,
  temporaryFolder: string,
): AsyncGenerator<Pair, void, void> {
  const members = { list: 'extensions', file: 'zip_file', text: 'name' }
  const parts = readMultipart(request, {
    headers: request.headers,
    isKnown: (path) => isOfPair(path, members),
    isFile: (path) => path.at(-1) === 'zip_file',
    maxParts: 2 * maxExtensionsOfSession,
    maxFileBytes: maxExtensionBytes,
  })
  return pairParts(parts, { ...members, maxPairs: maxExtensionsOfSession, temporaryFolder })
}
