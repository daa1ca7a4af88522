import { AddCustomWebMcpTools, InvokeWebMcpTool } from '@berth/contract/agent/operations/webmcp-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { validate } from '@berth/runtime/http/validate.ts'
import type { WebMcp } from './webmcp.ts'

/** Answers `webmcp` requests of code that runs in the session. */
export async function answerScript(
  webMcp: WebMcp,
  method: string,
  params: unknown,
  signal: AbortSignal,
): Promise<unknown> {
  switch (method) {
    case 'listTools':
      return webMcp.list({ includesCustom: true })
    case 'invokeTool':
      return webMcp.invoke(validate(InvokeWebMcpTool, params, 'invocation'), signal)
    case 'addCustomTools':
      return webMcp.addCustom(validate(AddCustomWebMcpTools, params, 'tools'), signal)
    case 'listCustomTools':
      return webMcp.listCustom()
    case 'removeCustomTool':
      return webMcp.removeCustom(String((params as { id?: unknown } | undefined)?.id))
    default:
      throw new BerthError('bad_request', { reason: `webmcp has no ${method}.` })
  }
}
