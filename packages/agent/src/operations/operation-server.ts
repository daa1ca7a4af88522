import type { IncomingMessage, ServerResponse } from 'node:http'
import { agentOperationsPath } from '@berth/contract/agent/agent-protocol.ts'
import type { Operation } from '@berth/contract/agent/operation.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { pathOf } from '@berth/runtime/http/error-reply.ts'
import { sendEvents } from '@berth/runtime/http/event-stream.ts'
import { checkText, readJsonBody } from '@berth/runtime/http/json-body.ts'
import { parseQuery, queryOf } from '@berth/runtime/http/query-string.ts'
import { validate } from '@berth/runtime/http/validate.ts'
import { sendJson } from '../http/json-body.ts'
import { reportCall } from '../telemetry/report-call.ts'
import type { TelemetryCollector } from '../telemetry/telemetry-collector.ts'
import { graceAfter, retryCountOf, sameCallKey } from './retries.ts'
import { RunningOperation } from './running-operation.ts'
import { sendContent } from './send-answer.ts'
import { Content, EventStream, type OperationContext, type ServedOperation } from './served-operation.ts'
import { servedOperations } from './served-operations.ts'

const defaultBodyLimitBytes = 8 * 1024 * 1024

interface Route extends ServedOperation {
  readonly pattern: RegExp
}

/** Every operation passes here: it finds the handler, validates the input, and sends the response. */
export class OperationServer {
  readonly #routes: readonly Route[]
  readonly #telemetry: TelemetryCollector
  /** Operations that a retry would join, with the key that identifies equal calls. */
  readonly #running = new Map<RunningOperation, string>()

  constructor(context: OperationContext) {
    this.#telemetry = context.telemetry
    this.#routes = servedOperations(context).map((served) => ({ ...served, pattern: patternOf(served.operation) }))
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { operation, handler, pattern } = this.#find(request)
    const noteBody = reportCall(this.#telemetry, { operation, request, response })
    const url = request.url ?? ''
    const query = operation.query && validate(operation.query, parseQuery(queryOf(url)), 'query')
    const params = operation.agentParams && validate(operation.agentParams, paramsOf(pattern, url), 'path')
    const body = await bodyOf(operation, request)
    noteBody(body)
    const retryCount = retryCountOf(request.headers)
    const key = retryCount === undefined ? undefined : sameCallKey(operation, url, body)
    const running =
      (retryCount ? this.#findRunning(key) : undefined) ??
      this.#begin(key, (signal) => handler({ params, query, body, request, signal }))
    const graceMilliseconds = key === undefined ? 0 : graceAfter(retryCount)

    const answer = await running.answerFor({ response, graceMilliseconds }).catch((error: unknown) => {
      // An operation that stops because its caller has left has not failed, and nobody waits for an error.
      if (!running.signal.aborted && !response.destroyed) throw error
    })

    if (response.destroyed) return
    const head = { status: operation.status, type: operation.replyType }
    if (answer instanceof EventStream) await sendEvents(response, answer.events)
    else if (answer instanceof Content) await sendContent(response, answer, head)
    else if (operation.reply) sendJson(response, operation.status, answer as object)
    else response.writeHead(operation.status, operation.status === 204 ? {} : { 'content-length': 0 }).end()
  }

  #begin(key: string | undefined, run: (signal: AbortSignal) => unknown): RunningOperation {
    const running = new RunningOperation(run, () => this.#running.delete(running))
    if (key !== undefined) this.#running.set(running, key)
    return running
  }

  /** Among equal operations, one whose caller has left: a caller that still waits has not retried. */
  #findRunning(key: string | undefined): RunningOperation | undefined {
    const same = [...this.#running].flatMap(([running, other]) => (other === key ? [running] : []))
    return same.find(({ hasCallers }) => !hasCallers) ?? same[0]
  }

  #find(request: IncomingMessage): Route {
    const path = pathOf(request.url ?? '')
    const { method = '' } = request
    const route = this.#routes.find(({ operation, pattern }) => operation.method === method && pattern.test(path))
    if (!route) throw new BerthError('route_not_found', { method, path: path.slice(agentOperationsPath.length) })
    return route
  }
}

function patternOf({ agentPath }: Operation): RegExp {
  const path = `${agentOperationsPath}${agentPath}`.split(/\{(\w+)\}/)
  return new RegExp(`^${path.map((part, index) => (index % 2 ? `(?<${part}>[^/]+)` : RegExp.escape(part))).join('')}$`)
}

function paramsOf(pattern: RegExp, url: string): Record<string, string> {
  const found = Object.entries(pattern.exec(pathOf(url))?.groups ?? {})
  return Object.fromEntries(found.map(([name, text]) => [name, decode(text)]))
}

function decode(text: string): string {
  try {
    const decoded = decodeURIComponent(text)
    checkText(decoded)
    return decoded
  } catch (cause) {
    if (cause instanceof BerthError) throw cause
    throw new BerthError('bad_request', { reason: 'The path is not encoded as UTF-8.' }, { cause })
  }
}

async function bodyOf(operation: Operation, request: IncomingMessage): Promise<unknown> {
  if (operation.bodyType) return undefined
  const limitBytes = operation.bodyLimitBytes ?? defaultBodyLimitBytes
  if (operation.body) {
    const { body, dataFields } = operation
    return validate(body, await readJsonBody(request.headers, request, { limitBytes, dataFields }), 'body')
  }
  request.resume()
  return undefined
}
