import { BerthError } from '@berth/contract/errors.ts'
import type { ApiException } from '@kubernetes/client-node'

/** The message of the API server, without the request and the response headers. */
export function apiMessage(error: unknown): string {
  const { body, message } = error as Partial<ApiException<unknown>>
  if (body === undefined) return message ?? String(error)
  try {
    const { message: said } = (typeof body === 'string' ? JSON.parse(body) : body) as { message?: string }
    return said ?? String(body)
  } catch {
    return String(body)
  }
}

export function hasStatus(error: unknown, ...statuses: readonly number[]): boolean {
  return statuses.includes((error as Partial<ApiException<unknown>>).code as number)
}

/** The error for callers when a pod was not created. */
export function creationError(error: unknown): Error {
  const reason = apiMessage(error)
  if (
    hasStatus(error, 403) &&
    /exceeded quota|must specify|maximum (cpu|memory)|is forbidden: .*(limit|quota)/i.test(reason)
  ) {
    return new BerthError('capacity_exhausted', { reason }, { cause: error })
  }
  // The API server requests a later retry: too many requests, or part of it is unavailable.
  if (hasStatus(error, 429, 503)) return new BerthError('capacity_exhausted', { reason }, { cause: error })
  return new Error(`the cluster does not create a pod: ${reason}`, { cause: error })
}
