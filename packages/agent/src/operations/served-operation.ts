import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import type { AgentConfig } from '@berth/contract/agent/agent-endpoints.ts'
import type { Operation } from '@berth/contract/agent/operation.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'
import type { z } from 'zod'
import type { Browser } from '../browser/browser.ts'
import type { Computer } from '../computer/computer.ts'
import type { ServiceLogs } from '../logs/service-logs.ts'
import type { Activity } from '../reporting/activity.ts'
import type { TelemetryCollector } from '../telemetry/telemetry-collector.ts'

/** What operations work with. */
export interface OperationContext {
  readonly config: AgentConfig
  readonly browser: Browser
  /** For work that continues after the response; running calls are counted already. */
  readonly activity: Activity
  readonly telemetry: TelemetryCollector
  readonly logger: Logger
  readonly serviceLogs: ServiceLogs
  /** Shared by all users of mouse and keyboard. */
  readonly computer: () => Promise<Computer>
}

/** The arguments of a handler. `signal` aborts if the caller disconnects before the end of the response. */
export interface OperationCall<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType> {
  readonly params: z.output<Params>
  readonly query: z.output<Query>
  /** The parsed JSON body; a body of another type is read from `request`. */
  readonly body: z.output<Body>
  readonly request: IncomingMessage
  readonly signal: AbortSignal
}

/** A response body that is not JSON. */
export class Content {
  readonly body: AsyncIterable<Uint8Array> | Uint8Array
  readonly headers: OutgoingHttpHeaders
  readonly status: number | undefined

  constructor(
    body: AsyncIterable<Uint8Array> | Uint8Array,
    { headers = {}, status }: { readonly headers?: OutgoingHttpHeaders; readonly status?: number } = {},
  ) {
    this.body = body
    this.headers = headers
    this.status = status
  }
}

/** A stream of server-sent events. It ends with its source, and the source is closed when nothing more can be sent. */
export class EventStream<Event extends object = object> {
  readonly events: AsyncIterable<Event>

  constructor(events: AsyncIterable<Event>) {
    this.events = events
  }
}

type Answer<Reply> = Content | EventStream | (Reply extends undefined ? void : Reply)

export interface ServedOperation {
  readonly operation: Operation
  readonly handler: (call: OperationCall<z.ZodType, z.ZodType, z.ZodType>) => Promise<Answer<unknown>> | Answer<unknown>
}

/** Connects an operation to its handler. */
export function serve<
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Reply extends z.ZodType,
>(
  operation: Operation<Params, Query, Body, Reply>,
  handler: (call: OperationCall<Params, Query, Body>) => Promise<Answer<z.input<Reply>>> | Answer<z.input<Reply>>,
): ServedOperation {
  return { operation, handler } as unknown as ServedOperation
}
