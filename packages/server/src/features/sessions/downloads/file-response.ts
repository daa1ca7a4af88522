import type { IncomingMessage } from 'node:http'
import { BerthError } from '@berth/contract/errors.ts'
import type { BinaryResponse } from '@berth/runtime/http/mount.ts'

/** Uses only numbers from the agent's response headers, because the agent may be compromised. */
export function fileResponse(response: IncomingMessage, name: string): BinaryResponse {
  const { statusCode, headers } = response
  if (statusCode === 200 || statusCode === 206) {
    const contentRange = headers['content-range']
    return {
      content: response,
      sizeBytes: Number(headers['content-length']),
      status: statusCode,
      headers: {
        'accept-ranges': 'bytes',
        ...(contentRange && /^bytes \d+-\d+\/\d+$/.test(contentRange) && { 'content-range': contentRange }),
      },
    }
  }
  response.destroy()
  if (statusCode === 416) {
    throw new BerthError('range_not_satisfiable', { sizeBytes: Number(/\d+$/.exec(headers['content-range'] ?? '')) })
  }
  throw statusCode === 404 || statusCode === 400
    ? new BerthError('file_not_found', { field: 'name', path: name })
    : new BerthError('session_unreachable')
}
