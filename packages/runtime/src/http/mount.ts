import type { Readable } from 'node:stream'
import { type Page, type PageRequest, pageHeaders } from '@berth/contract/common/page.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import { isStream } from '@berth/contract/stream.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { eventStreamHeaders, toEventStream } from './event-stream.ts'
import { checkText } from './json-body.ts'
import { parseQuery, queryOf } from './query-string.ts'
import { validate } from './validate.ts'

/** What a handler is called with. `signal` aborts when the client goes away before its answer. */
export interface Call<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType> {
  readonly params: z.output<Params>
  readonly query: z.output<Query>
  /** The parsed JSON body; a body of another type is read from `request.raw`. */
  readonly body: z.output<Body>
  readonly request: FastifyRequest
  /** Headers of the answer, if it is a success. */
  readonly setHeaders: (headers: Readonly<Record<string, string>>) => void
  readonly signal: AbortSignal
}

export type Handler<
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Reply extends z.ZodType,
> = (call: Call<Params, Query, Body>) => Promise<HandlerResult<z.input<Reply>>> | HandlerResult<z.input<Reply>>

/**
 * A paged endpoint returns a page; its items become the array of the answer. One with a `replyType` returns nothing while
 * there is nothing to send.
 */
type HandlerResult<Reply> = Reply extends readonly (infer Item)[]
  ? Reply | Page<Item>
  : Reply extends undefined
    ? void | BinaryAnswer
    : Reply

/** Of an endpoint with a `replyType` that has nothing to send yet: its handler returns nothing. */
const nothingYet = 202

/** The answer of an endpoint with a `replyType`. */
export interface BinaryAnswer {
  readonly content: Readable
  /** Absent where it is not known beforehand. */
  readonly sizeBytes?: number
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The handler reads the body by itself, from `request.raw`. */
    streamsBody?: boolean
  }
}

/** What callers have uploaded, and what comes out of a machine, is never a page of berth's own origin. */
export const foreignContentHeaders = { 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' }

interface MountOptions {
  /** Runs before the body is read, for example to learn who calls. */
  readonly onRequest?: (request: FastifyRequest, reply: FastifyReply) => Promise<void>
}

/** Serves an endpoint: parses its parts, calls the handler and sends the declared answer. */
export function mount<
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Reply extends z.ZodType,
>(
  app: FastifyInstance,
  endpoint: Endpoint<Params, Query, Body, Reply>,
  handler: Handler<Params, Query, Body, Reply>,
  options: MountOptions = {},
): void {
  mountRoute(app, endpoint, options, async (call, reply) => {
    // Answers are declared by the contract and made by our own code: they are not parsed a second time.
    const result = await handler(call)
    reply.code(endpoint.status)
    if (endpoint.replyType && !result) return reply.code(nothingYet).send()
    if (endpoint.replyType) return sendBinary(reply, endpoint.replyType, result as BinaryAnswer)
    if (!endpoint.reply) return reply.send()
    if (!endpoint.paged) return reply.send(result)
    const page = result as Page<unknown>
    return reply.headers(pageHeaders(call.query as PageRequest, page)).send(page.items)
  })
}

/** Serves a stream: the same, and each event goes out as soon as its reader has taken the one before. */
export function mountStream<Params extends z.ZodType, Query extends z.ZodType, Event extends z.ZodType>(
  app: FastifyInstance,
  endpoint: Endpoint<Params, Query, z.ZodUndefined, Event>,
  handler: (call: Call<Params, Query, z.ZodUndefined>) => Promise<AsyncIterable<z.input<Event>>>,
  options: MountOptions = {},
): void {
  if (!isStream(endpoint)) throw new Error(`${endpoint.operationId} is not declared as a stream`)
  mountRoute(app, endpoint, options, async (call, reply) => {
    const events = (await handler(call)) as AsyncIterable<object>
    // Its head goes out before its first event.
    reply.raw.once('pipe', () => reply.raw.flushHeaders())
    // Its end, whatever the reason, is no other request's affair: Fastify breaks the answer off and logs why.
    return reply.code(endpoint.status).headers(eventStreamHeaders).send(toEventStream(events))
  })
}

function mountRoute<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType, Reply extends z.ZodType>(
  app: FastifyInstance,
  endpoint: Endpoint<Params, Query, Body, Reply>,
  { onRequest }: MountOptions,
  answer: (call: Call<Params, Query, Body>, reply: FastifyReply) => Promise<FastifyReply>,
): void {
  app.route({
    method: endpoint.method,
    url: fastifyPath(endpoint.path),
    config: { streamsBody: endpoint.bodyType !== undefined },
    ...(onRequest && { onRequest }),
    handler: async (request: FastifyRequest, reply: FastifyReply) => {
      // Not by the router: what a parser throws there is caught by nobody and would end the process.
      const query = endpoint.query && validate(endpoint.query, parseQuery(queryOf(request.url)), 'query')
      const params = request.params as Record<string, string>
      for (const text of Object.values(params)) checkText(text)
      const call = {
        params: (endpoint.params && validate(endpoint.params, params, 'path')) as z.output<Params>,
        query: query as z.output<Query>,
        body: (endpoint.body &&
          !endpoint.bodyType &&
          validate(endpoint.body, request.body ?? undefined, 'body')) as z.output<Body>,
        request,
        setHeaders: (headers: Readonly<Record<string, string>>) => void reply.headers(headers),
        signal: abortedByClient(reply),
      }
      return answer(call, reply)
    },
  })
}

function sendBinary(reply: FastifyReply, mediaType: string, { content, sizeBytes }: BinaryAnswer): FastifyReply {
  if (sizeBytes !== undefined) reply.header('content-length', sizeBytes)
  reply.headers(foreignContentHeaders)
  return reply.type(mediaType).send(content)
}

/** Braced parameters as the router writes them. */
export function fastifyPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}

/** Aborts when the client goes away before its answer has ended. */
export function abortedByClient(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort()
  })
  return controller.signal
}
