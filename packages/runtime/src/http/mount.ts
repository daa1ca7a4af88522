import type { ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { type Page, type PageRequest, pageHeaders } from '@berth/contract/common/page.ts'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import { isStream } from '@berth/contract/stream.ts'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { type EventStreamOptions, eventStreamHeaders, toEventStream } from './event-stream.ts'
import { checkText } from './json-body.ts'
import { parseQuery, queryOf } from './query-string.ts'
import { validate } from './validate.ts'

/** The arguments of a handler. `signal` aborts when the client disconnects before the response. */
export interface Call<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType> {
  readonly params: z.output<Params>
  readonly query: z.output<Query>
  /** The parsed JSON body. A body of another type is read from `request.raw`. */
  readonly body: z.output<Body>
  readonly request: FastifyRequest
  /** Chooses another status that the endpoint declares as successful. */
  readonly setStatus: (status: number) => void
  /** Sets headers of a successful response. */
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
 * A paged endpoint returns a page, whose items become the array of the response. An endpoint with `replyType` returns
 * `undefined` when it has nothing to send yet. An endpoint that declares 204 in addition to its JSON response returns
 * `undefined` for it.
 */
type HandlerResult<Reply> = undefined | DeclaredResult<Reply>

type DeclaredResult<Reply> = Reply extends readonly (infer Item)[]
  ? Reply | Page<Item>
  : Reply extends undefined
    ? void | BinaryResponse
    : Reply

/** The status when the handler of an endpoint with `replyType` returns nothing. */
const nothingYet = 202
/** The status when the handler of an endpoint with a JSON response returns nothing. The endpoint declares it. */
const noContent = 204

/** The response of an endpoint with `replyType`. */
export interface BinaryResponse {
  readonly content: Readable
  /** Absent when it is not known in advance. */
  readonly sizeBytes?: number
  /** Differs from the endpoint's status for a part of the content. */
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The handler reads the body from `request.raw`. */
    streamsBody?: boolean
  }
}

/** Keeps uploaded content, and content from machines, from running as a page of berth's own origin. */
export const foreignContentHeaders = { 'content-security-policy': 'sandbox', 'x-content-type-options': 'nosniff' }

interface MountOptions {
  /** Runs before the body is read, for example to authenticate the caller. */
  readonly onRequest?: (request: FastifyRequest, reply: FastifyReply) => Promise<void>
}

interface StreamMountOptions<Event> extends MountOptions, Pick<EventStreamOptions, 'nameOf'> {
  /** The id of an event, with which a reader resumes. */
  readonly idOf?: (event: Event) => number
}

/** Serves an endpoint: validates its parts, calls the handler and sends the declared response. */
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
    // Responses are not validated again: our own code builds them to the declared type.
    reply.code(endpoint.status)
    const result = await handler(call)
    if (endpoint.replyType && !result) return reply.code(nothingYet).send()
    if (endpoint.replyType) return sendBinary(reply, endpoint.replyType, result as BinaryResponse)
    if (!endpoint.reply) return reply.send()
    if (result === undefined && endpoint.otherSuccesses?.[noContent]) return reply.code(noContent).send()
    if (!endpoint.paged) return reply.send(result)
    const page = result as Page<unknown>
    return reply.headers(pageHeaders(call.query as PageRequest, page)).send(page.items)
  })
}

/** Serves a stream like `mount`. Each event is sent when the reader has taken the one before. */
export function mountStream<Params extends z.ZodType, Query extends z.ZodType, Event extends z.ZodType>(
  app: FastifyInstance,
  endpoint: Endpoint<Params, Query, z.ZodUndefined, Event>,
  handler: (call: Call<Params, Query, z.ZodUndefined>) => Promise<AsyncIterable<z.input<Event>>>,
  options: StreamMountOptions<z.input<Event>> = {},
): void {
  if (!isStream(endpoint)) throw new Error(`${endpoint.operationId} is not declared as a stream`)
  const { nameOf } = options
  const about = {
    ...(options.idOf && { idOf: options.idOf as (event: object) => number }),
    ...(nameOf && { nameOf }),
  }
  mountRoute(app, endpoint, options, async (call, reply) => {
    const events = (await handler(call)) as AsyncIterable<object>
    // Sends the headers before the first event.
    reply.raw.once('pipe', () => reply.raw.flushHeaders())
    // A failure of the source ends only this response: Fastify cuts it off and logs the reason.
    return reply.code(endpoint.status).headers(eventStreamHeaders).send(toEventStream(events, about))
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
    ...(endpoint.bodyLimitBytes !== undefined && { bodyLimit: endpoint.bodyLimitBytes }),
    ...(onRequest && { onRequest }),
    handler: async (request: FastifyRequest, reply: FastifyReply) => {
      // Parsed here and not by the router: nothing catches errors of a query parser there, and they would end the
      // process.
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
        setStatus: (status: number) => void reply.code(status),
        setHeaders: (headers: Readonly<Record<string, string>>) => void reply.headers(headers),
        signal: abortedByClient(reply),
      }
      return answer(call, reply)
    },
  })
}

export function sendBinary(
  reply: FastifyReply,
  mediaType: string,
  { content, sizeBytes, status, headers = {} }: BinaryResponse,
): FastifyReply {
  if (status !== undefined) reply.code(status)
  reply.headers(headers)
  if (sizeBytes !== undefined) reply.header('content-length', sizeBytes)
  reply.headers(foreignContentHeaders)
  return reply.type(mediaType).send(content)
}

/** Converts parameters in braces to the syntax of the router. */
export function fastifyPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}

/** Aborts when the client disconnects before the response is complete. */
export function abortedByClient({ raw }: FastifyReply): AbortSignal {
  const known = clientSignals.get(raw)
  if (known) return known
  const controller = new AbortController()
  clientSignals.set(raw, controller.signal)
  raw.once('close', () => {
    if (!raw.writableFinished) controller.abort()
  })
  return controller.signal
}

/** One signal for each response, however often it is requested. */
const clientSignals = new WeakMap<ServerResponse, AbortSignal>()
