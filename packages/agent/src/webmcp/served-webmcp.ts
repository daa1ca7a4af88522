import { Buffer } from 'node:buffer'
import {
  addCustomWebMcpTools,
  deleteCustomWebMcpTool,
  invokeWebMcpTool,
  listCustomWebMcpTools,
  listWebMcpTools,
} from '@berth/contract/agent/operations/webmcp-operations.ts'
import { errorBody } from '@berth/runtime/http/error-reply.ts'
import { Content, type ServedOperation, serve } from '../operations/served-operation.ts'
import { InvocationError } from './invocation-error.ts'
import type { WebMcp } from './webmcp.ts'

export function servedWebMcp(webMcp: WebMcp): readonly ServedOperation[] {
  return [
    serve(listWebMcpTools, async ({ query }) => ({
      tools: [...(await webMcp.list({ includesCustom: !query.exclude_custom }))],
    })),
    serve(invokeWebMcpTool, async ({ body, signal }) => {
      try {
        return await webMcp.invoke(body, signal)
      } catch (error) {
        if (error instanceof InvocationError && error.invocationId !== undefined) return unknownOutcome(error)
        throw error
      }
    }),
    serve(listCustomWebMcpTools, () => ({ tools: [...webMcp.listCustom()] })),
    serve(addCustomWebMcpTools, async ({ body, signal }) => ({ tools: [...(await webMcp.addCustom(body, signal))] })),
    serve(deleteCustomWebMcpTool, ({ params }) => webMcp.removeCustom(params.id)),
  ]
}

/** With the id of the invocation, by which the page's own traces may reveal the outcome. */
function unknownOutcome(error: InvocationError): Content {
  const body = { ...errorBody(error), invocation_id: error.invocationId }
  return new Content(Buffer.from(JSON.stringify(body)), {
    status: error.status,
    headers: { 'content-type': 'application/json; charset=utf-8', 'x-should-retry': 'false' },
  })
}
