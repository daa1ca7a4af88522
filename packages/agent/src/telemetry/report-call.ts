import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Operation } from '@berth/contract/agent/operation.ts'
import { cutBytes } from './pages/cut.ts'
import type { TelemetryCollector } from './telemetry-collector.ts'

const maxCodeBytes = 8_192
const cutMark = '...[truncated]'
const clientHasLeft = 499

const types = { control: 'api_call', platform: 'platform_api_call' } as const

interface ReportedCall {
  readonly operation: Operation
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Reports a call after its response, or when its caller has disconnected. The returned function records its body. */
export function reportCall(
  telemetry: TelemetryCollector,
  { operation, request, response }: ReportedCall,
): (body: unknown) => void {
  if (!telemetry.captures(operation.category)) return () => {}
  const begin = performance.now()
  let code: string | undefined
  response.once('close', () => {
    const { text, isCut } = cutBytes(code ?? '', maxCodeBytes)
    const data = {
      operation_id: operation.operationId,
      request_id: String(request.headers['x-request-id'] ?? ''),
      status: response.headersSent ? response.statusCode : clientHasLeft,
      duration_ms: Math.round((performance.now() - begin) * 1000) / 1000,
      ...(code !== undefined && { code: isCut ? cutBytes(text, maxCodeBytes - cutMark.length).text + cutMark : text }),
    }
    const source = { kind: 'kernel_api' as const, event: operation.operationId }
    telemetry.emit({ type: types[operation.category], source, data, ...(isCut && { truncated: true }) })
  })
  return (body) => {
    if (operation.operationId === 'executePlaywrightCode') code = (body as { readonly code: string }).code
  }
}
