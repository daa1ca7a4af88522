import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type AddCustomWebMcpTools,
  type WebMcpInvocation,
  WebMcpTool,
} from '@berth/contract/agent/operations/webmcp-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { validate } from '@berth/runtime/http/validate.ts'
import { z } from 'zod'
import type { TargetSession } from '../browser/targets/target-session.ts'
import type { CustomTool, ToolDefinition } from './custom-tools.ts'
import { InvocationError } from './invocation-error.ts'
import { aborted, completed, type Invocation } from './invoke-page-tool.ts'
import type { ToolProcess } from './tool-process.ts'
import type { MatchingPage } from './tool-process-messages.ts'
import { isUrlPattern } from './url-patterns.ts'

/** A source that takes longer to define its tools is doing something else. */
const defineLimitMilliseconds = 60_000

const Definitions = z
  .array(
    z.object({
      kind: z.enum(['page', 'cdp']),
      match: z.object({
        url_patterns: z.array(z.string().refine(isUrlPattern, { error: 'must be a URL pattern' })).min(1),
      }),
      tool: WebMcpTool.extend({
        name: z.string().min(1).max(256),
        inputSchema: z.record(z.string(), z.unknown()).default({ type: 'object', properties: {} }),
      }),
      executes: z.literal(true, { error: 'must have a function execute' }),
    }),
  )
  .min(1)

/** The definitions of the source. It is evaluated in the tools' process: only their descriptions reach the agent. */
export async function readDefinitions(
  process: ToolProcess,
  { source }: AddCustomWebMcpTools,
  signal: AbortSignal,
): Promise<readonly ToolDefinition[]> {
  const outcome = await process.run({ type: 'define', source }, defineLimitMilliseconds, signal)
  if (outcome.kind !== 'done') throw new BerthError('invalid_input', { reason: `source: ${outcome.error}.` })
  return validate(Definitions, outcome.result, 'source').map(({ kind, match, tool }) => ({ kind, match, tool }))
}

/** Executes a tool that controls the browser from outside the page. */
export async function executeInProcess(
  process: ToolProcess,
  { source, index }: CustomTool,
  matches: readonly MatchingPage[],
  { input, timeoutSeconds, signal }: Invocation,
): Promise<WebMcpInvocation> {
  const id = randomUUID()
  const timeoutMilliseconds = timeoutSeconds * 1000
  const task = { type: 'execute', source: source.text, index, input, matches, timeoutMilliseconds } as const
  const outcome = await process.run(task, timeoutMilliseconds, signal)
  if (outcome.kind === 'done') {
    return { invocation_id: id, status: 'completed', ...(outcome.result !== undefined && { output: outcome.result }) }
  }
  if (outcome.kind === 'failed') return { invocation_id: id, status: 'error', error_text: outcome.error }
  throw new InvocationError(outcome.error, id)
}

interface Evaluated {
  readonly result: { readonly value?: string }
  readonly exceptionDetails?: {
    readonly text: string
    readonly exception?: { readonly description?: string; readonly value?: unknown }
  }
}

/** Executes a tool in the page itself, from its complete source, because its functions may share variables. */
export async function executeInPage(
  session: TargetSession,
  { source, index }: CustomTool,
  { input, timeoutSeconds, signal }: Invocation,
): Promise<WebMcpInvocation> {
  const id = randomUUID()
  const expression = `(async () => {
    const definitions = [await (${source.text}\n)].flat()
    return JSON.stringify({ output: await definitions[${index}].execute(${JSON.stringify(input)}) })
  })()`
  const toEvaluate = { expression, awaitPromise: true, returnByValue: true, userGesture: true }
  const evaluated = session
    .send('Runtime.evaluate', toEvaluate, Number.POSITIVE_INFINITY)
    .catch(({ message }: Error) => new InvocationError(message, id))
  const answer = await Promise.race([
    evaluated,
    session.lost.then(() => new InvocationError('its page has closed', id)),
    delay(timeoutSeconds * 1000, undefined, { ref: false }).then(
      () => new InvocationError(`it did not end within ${timeoutSeconds} s`, id),
    ),
    aborted(signal).then(() => new InvocationError('the caller has disconnected', id)),
  ])
  if (answer instanceof InvocationError) throw answer
  const { result, exceptionDetails } = answer as unknown as Evaluated
  if (!exceptionDetails) return completed(id, (JSON.parse(result.value as string) as { output?: unknown }).output)
  const { text, exception } = exceptionDetails
  const thrown = exception?.description?.split('\n    at ', 1)[0] ?? exception?.value ?? text
  return { invocation_id: id, status: 'error', error_text: String(thrown) }
}
