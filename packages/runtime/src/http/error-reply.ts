import { BerthError, type ErrorDetail, type NetError } from '@berth/contract/errors.ts'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from '../process/logger.ts'

/** The body of every error answer. */
export interface ErrorBody extends Partial<NetError> {
  readonly code: string
  readonly message: string
  readonly details?: readonly ErrorDetail[]
}

export function errorBody(error: BerthError): ErrorBody {
  const { code, message, faults, netError } = error
  return { code, message, ...(faults && { details: faults }), ...netError }
}

/** Turns whatever was thrown into the error that the caller sees. What nobody expected becomes `internal_error`. */
export function toBerthError(thrown: unknown): BerthError {
  if (thrown instanceof BerthError) return thrown
  const { code, statusCode, message } = thrown as FastifyError
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE')
    return new BerthError('body_too_large', { limitBytes: 0 }, { cause: thrown })
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return new BerthError('unsupported_media_type', { reason: 'The body must be application/json.' }, { cause: thrown })
  }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new BerthError('bad_request', { reason: message }, { cause: thrown })
  }
  return new BerthError('internal_error', undefined, { cause: thrown })
}

/** What tells a client whether, and when, to send the request again. */
export function retryHeaders({ retry, retryAfterSeconds }: BerthError): Record<string, string> {
  return {
    ...(retry !== undefined && { 'x-should-retry': String(retry) }),
    ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
  }
}

export function sendError(reply: FastifyReply, error: BerthError): FastifyReply {
  if (error.code === 'internal_error') reply.header('x-request-id', reply.request.id)
  reply.headers(retryHeaders(error))
  // The rest of the body may come later, and is no request.
  if (error.code === 'request_timeout') reply.header('connection', 'close')
  // The framework would hang up at once, and who still sends would never see the answer.
  if (error.code === 'body_too_large') reply.removeHeader('connection')
  return reply.code(error.status).header('content-type', 'application/json; charset=utf-8').send(errorBody(error))
}

interface ErrorReplyOptions {
  /** Who may learn that a path does not exist; throws for everybody else. */
  readonly admit?: (request: FastifyRequest) => Promise<unknown>
}

/** One place where a throw becomes a reply, and a bug a line in the log; expected failures are logged where they happen. */
export function replyWithErrors(app: FastifyInstance, logger: Logger, { admit }: ErrorReplyOptions = {}): void {
  app.setErrorHandler((thrown: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const error = toBerthError(thrown)
    const clientHasLeft = reply.raw.destroyed
    if (error.code === 'internal_error' && !clientHasLeft) {
      const facts = {
        err: error.cause ?? error,
        requestId: request.id,
        method: request.method,
        route: request.routeOptions.url,
      }
      logger.error(facts, `${error.code}: ${error.message}`)
    }
    return sendError(reply, error)
  })
  app.setNotFoundHandler(async (request) => {
    await admit?.(request)
    throw new BerthError('route_not_found', { method: request.method, path: pathOf(request.url) })
  })
}

/** Without the query: it can hold a token. */
export function pathOf(url: string): string {
  return url.split('?', 1)[0] ?? url
}
