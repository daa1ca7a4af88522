import { type LogEvent, streamLogs } from '@berth/contract/agent/operations/logs-operations.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { EventStream, type OperationContext, type ServedOperation, serve } from '../operations/served-operation.ts'
import { fileLines } from './file-lines.ts'
import type { ServiceLogs } from './service-logs.ts'

export function servedLogs({ serviceLogs }: OperationContext): readonly ServedOperation[] {
  return [
    serve(streamLogs, ({ query, signal }) => {
      const { path, supervisor_process: service, follow: isFollowed } = query
      if (query.source === 'path') return new EventStream(ofFile(path ?? '', isFollowed, signal))
      return new EventStream(ofService(serviceLogs, service ?? 'chromium', isFollowed, signal))
    }),
  ]
}

async function* ofFile(path: string, isFollowed: boolean, signal: AbortSignal): AsyncGenerator<LogEvent> {
  try {
    for await (const line of fileLines({ path, isFollowed, signal })) yield eventOf(line, systemClock.now())
  } catch (error) {
    yield eventOf(`failed to open log path: ${(error as Error).message}`, systemClock.now())
  }
}

async function* ofService(
  logs: ServiceLogs,
  service: Parameters<ServiceLogs['history']>[0],
  isFollowed: boolean,
  signal: AbortSignal,
): AsyncGenerator<LogEvent> {
  const lines = isFollowed ? logs.follow(service, signal) : logs.history(service)
  for await (const { message, at } of lines) yield eventOf(message, at)
}

function eventOf(message: string, at: Date): LogEvent {
  return { event: 'log', message, timestamp: at.toISOString() }
}
