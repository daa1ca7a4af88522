import { BerthError, type ErrorDetail, type NetError, publicCodeOf } from '@berth/contract/errors.ts'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from '../process/logger.ts'

const maxMessageLength = 2_000

/** The body of every error response. */
export interface ErrorBody extends Partial<NetError> {
  readonly code: string
  readonly message: string
  readonly details?: readonly ErrorDetail[]
  readonly existing_id?: string
}

export function errorBody(error: BerthError): ErrorBody {
  const { code, message, faults, netError, existingId } = error
  return {
    code: publicCodeOf(code),
    message: shortened(message),
    ...(faults && { details: faults.map((fault) => ({ ...fault, message: shortened(fault.message ?? '') })) }),
    ...(existingId !== undefined && { existing_id: existingId }),
    ...netError,
  }
}

/** Messages quote what the caller sent, which may be long. */
function shortened(message: string): string {
  return message.length > maxMessageLength ? `${message.slice(0, maxMessageLength).toWellFormed()}…` : message
}

/** Converts any thrown value into the error that the caller sees. Unexpected values become `internal_error`. */
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

/** Headers that tell a client whether and when to repeat the request. */
export function retryHeaders({ retry, retryAfterSeconds }: BerthError): Record<string, string> {
  return {
    ...(retry !== undefined && { 'x-should-retry': String(retry) }),
    ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
  }
}

export function sendError(reply: FastifyReply, error: BerthError): FastifyReply {
  if (error.code === 'internal_error') reply.header('x-request-id', reply.request.id)
  reply.headers(retryHeaders(error))
  // The rest of the body may still arrive and must not be read as a request.
  if (error.code === 'request_timeout') reply.header('connection', 'close')
  // The framework would close the connection at once, and a client that still sends would never see the response.
  if (error.code === 'body_too_large') reply.removeHeader('connection')
  return reply.code(error.status).header('content-type', 'application/json; charset=utf-8').send(errorBody(error))
}

interface ErrorReplyOptions {
  /** Decides who may learn that a path does not exist. Throws for other callers. */
  readonly admit?: (request: FastifyRequest) => Promise<unknown>
}

/**
 * The one place that converts thrown errors into responses and logs bugs. Expected failures are logged where they
 * happen.
 */
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

/** The query is removed because it can contain a token. */
export function pathOf(url: string): string {
  return url.split('?', 1)[0] ?? url
}
