import type { z } from 'zod'

export const eventStreamType = 'text/event-stream'

interface StreamDeclaration {
  /** What the data of each event is, as JSON. */
  readonly event: z.ZodType
}

type Stream<Declaration extends StreamDeclaration> = Omit<Declaration, 'event'> & {
  readonly method: 'GET'
  readonly status: 200
  readonly reply: Declaration['event']
  readonly replyType: typeof eventStreamType
}

/** Declares an endpoint, or an operation, that answers with server-sent events: `defineOperation(defineStream({ … }))`. */
export function defineStream<const Declaration extends StreamDeclaration>(
  declaration: Declaration,
): Stream<Declaration> {
  const { event, ...endpoint } = declaration
  return { ...endpoint, method: 'GET', status: 200, reply: event, replyType: eventStreamType }
}

/** Whether a successful answer is a stream of events. */
export function isStream({ replyType }: { readonly replyType?: string | undefined }): boolean {
  return replyType === eventStreamType
}
