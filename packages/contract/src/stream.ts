import type { z } from 'zod'

export const eventStreamType = 'text/event-stream'

interface StreamDeclaration {
  /** The schema of each event's data, as JSON. */
  readonly event: z.ZodType
}

type Stream<Declaration extends StreamDeclaration> = Omit<Declaration, 'event'> & {
  readonly method: 'GET'
  readonly status: 200
  readonly reply: Declaration['event']
  readonly replyType: typeof eventStreamType
}

/**
 * Declares an endpoint or an operation that responds with server-sent events: `defineOperation(defineStream({ … }))`.
 */
export function defineStream<const Declaration extends StreamDeclaration>(
  declaration: Declaration,
): Stream<Declaration> {
  const { event, ...endpoint } = declaration
  return { ...endpoint, method: 'GET', status: 200, reply: event, replyType: eventStreamType }
}

/** Whether a successful response is a stream of events. */
export function isStream({ replyType }: { readonly replyType?: string | undefined }): boolean {
  return replyType === eventStreamType
}
