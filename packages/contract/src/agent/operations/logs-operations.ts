import { z } from 'zod'
import { QueryBoolean } from '../../common/query.ts'
import { Timestamp } from '../../common/time.ts'
import { defineStream } from '../../stream.ts'
import { ServiceName } from '../agent-endpoints.ts'
import { defineOperation } from '../operation.ts'

export const LogEvent = z
  .object({ event: z.literal('log'), message: z.string(), timestamp: Timestamp })
  .meta({ id: 'LogEvent' })
export type LogEvent = z.infer<typeof LogEvent>

const LogQuery = z
  .object({
    source: z.enum(['path', 'supervisor']),
    follow: QueryBoolean.default(true).meta({
      description: 'True: lines that are written from now on. False: existing lines, after which the stream ends.',
    }),
    path: z.string().max(4096).optional().meta({ description: 'With `source=path`: an absolute path in the session.' }),
    supervisor_process: ServiceName.optional().meta({ description: 'With `source=supervisor`.' }),
  })
  .superRefine(({ source, path, supervisor_process }, context) => {
    const field = source === 'path' ? 'path' : 'supervisor_process'
    if ((source === 'path' ? path : supervisor_process) !== undefined) return
    context.addIssue({ code: 'custom', path: [field], message: `must be given with source=${source}` })
  })

export const streamLogs = defineOperation(
  defineStream({
    operationId: 'streamLogs',
    path: '/logs/stream',
    summary: 'Follow a log',
    description:
      'Sends an event for each line that is not empty. If the file cannot be read, one event gives the reason.',
    tag: 'Browser Logs',
    category: 'platform',
    query: LogQuery,
    event: LogEvent,
    errors: [],
  }),
)

export const logsOperations = [streamLogs] as const
