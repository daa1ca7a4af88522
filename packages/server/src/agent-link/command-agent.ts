import type { Endpoint } from '@berth/contract/endpoint.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { z } from 'zod'
import type { ReachableMachine } from '../drivers/driver.ts'
import { requestAgent } from './agent-client.ts'

const answerLimitMilliseconds = 10_000
const maxRefusalLength = 500

export interface CommandOptions {
  readonly limitMilliseconds?: number
  /** The limit of the response, for commands with longer responses than most. */
  readonly maxAnswerBytes?: number
  /** Aborts the command when its caller disconnects. */
  readonly signal?: AbortSignal
}

/**
 * Sends a command to an agent and returns its response. Rejects with an `AgentRefusal` when the agent rejects the
 * command, and with `session_unreachable` when there is no response in time or one that does not match the declaration.
 */
export async function commandAgent<Body extends z.ZodType, Reply extends z.ZodType>(
  machine: ReachableMachine,
  { method, path, status: success, reply }: Endpoint<z.ZodType, z.ZodType, Body, Reply>,
  body: z.input<Body>,
  { limitMilliseconds = answerLimitMilliseconds, maxAnswerBytes, signal: caller }: CommandOptions = {},
): Promise<z.output<Reply>> {
  const unreachable = (cause: unknown) => {
    throw new BerthError('session_unreachable', undefined, { cause })
  }
  const text = JSON.stringify(body)
  const headers = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) }
  const limit = AbortSignal.timeout(limitMilliseconds)
  const signal = caller ? AbortSignal.any([limit, caller]) : limit
  const bounds = { signal, ...(maxAnswerBytes !== undefined && { maxBytes: maxAnswerBytes }) }
  const answer = await requestAgent(machine, { method, path, headers, body: text, ...bounds }).catch(unreachable)
  if (answer.status !== success) throw new AgentRefusal(path, answer.status, answer.text)
  try {
    return (reply ? reply.parse(JSON.parse(answer.text)) : undefined) as z.output<Reply>
  } catch (cause) {
    return unreachable(cause)
  }
}

/**
 * The error response of an agent to a command. The message comes from the agent and is shown only to the owner of its
 * session.
 */
export class AgentRefusal extends Error {
  readonly status: number
  readonly code: string

  constructor(path: string, status: number, text: string) {
    const { code, message } = refusalIn(text)
    super(String(message ?? `the agent answers ${path} with ${status}`).slice(0, maxRefusalLength))
    this.status = status
    this.code = String(code ?? '').slice(0, maxRefusalLength)
  }
}

function refusalIn(text: string): { readonly code?: unknown; readonly message?: unknown } {
  try {
    return JSON.parse(text) ?? {}
  } catch {
    return {}
  }
}
