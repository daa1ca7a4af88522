import { setTimeout as delay } from 'node:timers/promises'
import type { WebMcpInvocation } from '@berth/contract/agent/operations/webmcp-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { CdpParams } from '../browser/cdp-types.ts'
import type { TargetSession } from '../browser/targets/target-session.ts'
import { InvocationError } from './invocation-error.ts'
import { type PageTool, readFrames, readTools } from './page-tools.ts'
import type { ToolPlace } from './tool-refs.ts'

const maxOutputBytes = 240 * 1024
/** A filled-in form reports nothing until its user acts; one that cannot be filled in reports that immediately. */
const formAnswerMilliseconds = 150

export interface Invocation {
  readonly input: Readonly<Record<string, unknown>>
  readonly timeoutSeconds: number
  /** Aborts when the caller disconnects: the page is told that nobody waits any more. */
  readonly signal: AbortSignal
}

interface Response {
  readonly status: 'Completed' | 'Canceled' | 'Error'
  readonly output?: unknown
  readonly errorText?: string
  readonly exception?: { readonly description?: string; readonly value?: unknown }
}

/** Uses a tool of a page as long as the document that offered it exists. */
export async function invokePageTool(
  session: TargetSession,
  place: ToolPlace,
  invocation: Invocation,
): Promise<WebMcpInvocation> {
  const { waitsForUser } = await findTool(session, place)
  await session.send('WebMCP.enable')
  const running = new PageInvocation(session)
  try {
    return await running.run(place, invocation, waitsForUser)
  } finally {
    running.close()
  }
}

async function findTool(session: TargetSession, { frameId, documentId, name }: ToolPlace): Promise<PageTool> {
  const [frames, tools] = await Promise.all([readFrames(session), readTools(session, frameId)])
  if (!frames) throw new BerthError('page_not_answering')
  const tool = tools?.find((found) => found.tool.name === name)
  if (!tool || !frames.some((frame) => frame.id === frameId && frame.documentId === documentId)) {
    throw new BerthError('tool_not_found')
  }
  return tool
}

class PageInvocation {
  readonly #session: TargetSession
  readonly #responses = new Map<string, Response>()
  #onResponse: () => void = () => {}
  readonly close: () => void

  constructor(session: TargetSession) {
    this.#session = session
    this.close = session.on('WebMCP.toolResponded', ({ invocationId, ...response }) => {
      this.#responses.set(invocationId as string, response as unknown as Response)
      this.#onResponse()
    })
  }

  async run({ frameId, name }: ToolPlace, invocation: Invocation, waitsForUser: boolean): Promise<WebMcpInvocation> {
    const { input, timeoutSeconds, signal } = invocation
    const ended = Promise.race([
      this.#session.lost.then(() => 'its page has closed'),
      delay(timeoutSeconds * 1000, `it did not end within ${timeoutSeconds} s`, { ref: false }),
      aborted(signal).then(() => 'the caller has disconnected'),
    ]).then((reason) => new Ended(reason))
    const id = await Promise.race([this.#begin({ frameId, toolName: name, input }), ended])
    if (id instanceof Ended) throw new InvocationError(id.reason)
    const response = await Promise.race([
      this.#response(id),
      ended,
      ...(waitsForUser ? [delay(formAnswerMilliseconds)] : []),
    ])
    if (response instanceof Ended) {
      this.#session.send('WebMCP.cancelInvocation', { invocationId: id }).catch(() => {})
      throw new InvocationError(response.reason, id)
    }
    return response ? outcomeOf(id, response) : { invocation_id: id, status: 'awaiting_submission' }
  }

  async #begin(params: CdpParams<'WebMCP.invokeTool'>): Promise<string> {
    try {
      return (await this.#session.send('WebMCP.invokeTool', params, Number.POSITIVE_INFINITY)).invocationId
    } catch (cause) {
      // Chromium refuses before it starts: the tool has just been removed.
      throw new BerthError('tool_not_found', undefined, { cause })
    }
  }

  #response(id: string): Promise<Response> {
    return new Promise((resolve) => {
      this.#onResponse = () => {
        const response = this.#responses.get(id)
        if (response) resolve(response)
      }
      this.#onResponse()
    })
  }
}

class Ended {
  readonly reason: string

  constructor(reason: string) {
    this.reason = reason
  }
}

function outcomeOf(id: string, { status, output, errorText, exception }: Response): WebMcpInvocation {
  if (status === 'Completed') return completed(id, output)
  if (status === 'Canceled')
    return { invocation_id: id, status: 'canceled', ...(errorText && { error_text: errorText }) }
  const thrown = exception?.description?.split('\n    at ', 1)[0] ?? exception?.value
  return { invocation_id: id, status: 'error', error_text: errorText || String(thrown ?? 'The tool has failed.') }
}

/** The result of a tool, or an error if the result is too large. */
export function completed(id: string, output: unknown): WebMcpInvocation {
  const length = output === undefined ? 0 : Buffer.byteLength(JSON.stringify(output))
  if (length > maxOutputBytes) {
    return { invocation_id: id, status: 'error', error_text: `The output is larger than ${maxOutputBytes} bytes.` }
  }
  return { invocation_id: id, status: 'completed', ...(output !== undefined && { output }) }
}

export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
