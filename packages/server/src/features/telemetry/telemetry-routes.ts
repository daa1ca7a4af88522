import type { IncomingHttpHeaders } from 'node:http'
import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import { listTelemetryEvents, streamTelemetry } from '@berth/contract/telemetry/telemetry-endpoints.ts'
import type { TelemetryEnvelope } from '@berth/contract/telemetry/telemetry-event.ts'
import { checkText } from '@berth/runtime/http/json-body.ts'
import { mountStream } from '@berth/runtime/http/mount.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Caller } from '../../access/caller.ts'
import type { MountForCallers } from '../../access/mount-for-callers.ts'
import type { SessionAccess } from '../../access/session-access.ts'
import { readSessionCredentials } from '../../access/session-credentials.ts'
import type { TelemetryService } from './telemetry-service.ts'

type StreamQuery = z.output<typeof streamTelemetry.query & {}>

interface TelemetryRoutesOptions {
  readonly telemetry: TelemetryService
  readonly resolver: {
    resolve(caller: { readonly projectId: ProjectId }, idOrName: string): Promise<{ readonly id: SessionId }>
  }
  /** The prefix, followed by a session's id, for requests with the session's token. */
  readonly sessionRoot: string
  readonly access: SessionAccess
  readonly callerOf: (headers: IncomingHttpHeaders) => Promise<Caller>
}

export function mountTelemetryRoutes(
  app: FastifyInstance,
  mount: MountForCallers,
  { telemetry, resolver, access, callerOf, sessionRoot }: TelemetryRoutesOptions,
): void {
  const streamOfSession = {
    ...streamTelemetry,
    path: `/${sessionRoot.slice(1)}/{session_id}/telemetry/stream` as const,
    access: 'session' as const,
    params: z.object({ session_id: z.string() }),
  }
  const idOf = ({ seq }: TelemetryEnvelope) => seq
  const open = async (id: SessionId, query: StreamQuery, { headers }: FastifyRequest, signal: AbortSignal) =>
    telemetry.stream(id, { ...query, lastEventId: headers['last-event-id']?.toString() }, signal)
  const authenticate = async (request: FastifyRequest) => {
    request.caller = await callerOf(request.headers)
  }

  mountStream(
    app,
    streamTelemetry,
    async ({ params, query, request, signal }) => {
      const { projectId } = request.caller as Caller
      const { id } = await resolver.resolve({ projectId }, params.id_or_name)
      return open(id, query, request, signal)
    },
    { onRequest: authenticate, idOf },
  )

  mountStream(
    app,
    streamOfSession,
    async ({ params, query, request, signal }) => {
      checkText(params.session_id)
      const { id } = await access.admit(readSessionCredentials(request), params.session_id)
      return open(id, query, request, signal)
    },
    { idOf },
  )

  mount(listTelemetryEvents, async ({ caller, params, query, setHeaders }) => {
    const page = await telemetry.list(caller.projectId, params.id_or_name, query)
    setHeaders({
      'x-limit': String(query.limit),
      'x-offset': String(query.offset ?? 0),
      'x-has-more': String(page.hasMore),
      'x-next-offset': String(page.nextOffset),
    })
    return [...page.items]
  })
}
