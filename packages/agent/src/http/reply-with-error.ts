import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { errorBody, retryHeaders, toBerthError } from '@berth/runtime/http/error-reply.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import { sendJson } from './json-body.ts'

/** How long the rest of a refused body may take to arrive. */
const refusedBodyLimitMilliseconds = 10_000

/** The only place that converts errors to responses and logs bugs. */
export async function replyWithError(
  request: IncomingMessage,
  response: ServerResponse,
  { thrown, logger }: { readonly thrown: unknown; readonly logger: Logger },
): Promise<void> {
  const error = toBerthError(thrown)
  const requestId = request.headers['x-request-id']
  if (error.code === 'internal_error') {
    logger.error({ err: error.cause ?? error, requestId }, error.message)
    if (requestId !== undefined && !response.headersSent) response.setHeader('x-request-id', requestId)
  }
  if (response.headersSent) {
    response.destroy()
    return
  }
  for (const [name, value] of Object.entries(retryHeaders(error))) response.setHeader(name, value)
  // The rest of a refused body is useless. But its sender reads no response before the body is consumed, and the
  // connection ends with the response.
  request.resume()
  const late = delay(refusedBodyLimitMilliseconds, undefined, { ref: false })
  if (!request.complete) await Promise.race([once(request, 'end'), once(request, 'close'), late]).catch(() => {})
  sendJson(response, error.status, errorBody(error))
}
