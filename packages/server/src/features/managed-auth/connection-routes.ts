import { BerthError } from '@berth/contract/errors.ts'
import {
  createAuthConnection,
  deleteAuthConnection,
  exchangeHandoffCode,
  followAuthConnection,
  getAuthConnection,
  listAuthConnections,
  listAuthTimeline,
  loginAuthConnection,
  submitAuthConnection,
  updateAuthConnection,
} from '@berth/contract/managed-auth/connection-endpoints.ts'
import { mount as mountPublic } from '@berth/runtime/http/mount.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Caller } from '../../access/caller.ts'
import type { MountForCallers, MountStreamForCallers } from '../../access/mount-for-callers.ts'
import { publicUrlOf } from '../../access/public-url.ts'
import { connectionRecord, timelineRecord } from './connection-record.ts'
import { type ConnectionService, type ConnectionWithFlow, hostedUrl } from './connection-service.ts'
import type { FlowService } from './flow-service.ts'

interface ConnectionRoutesOptions {
  readonly authConnections: ConnectionService
  readonly authFlows: FlowService
  readonly publicUrl: string | undefined
}

/** How endpoints are mounted. Some also accept a hand-off token instead of a key. */
interface Mounts {
  readonly app: FastifyInstance
  readonly mount: MountForCallers
  readonly mountForHandoffs: MountForCallers
  readonly mountStreamForHandoffs: MountStreamForCallers
}

export function mountConnectionRoutes(
  { app, mount, mountForHandoffs, mountStreamForHandoffs }: Mounts,
  { authConnections: connections, authFlows: flows, publicUrl }: ConnectionRoutesOptions,
): void {
  const urlOf = (request: FastifyRequest) => publicUrlOf(request.raw, publicUrl)
  const record = async ({ connection, flow }: ConnectionWithFlow, request: FastifyRequest) =>
    connectionRecord(connection, flow, await connections.linksOf(connection.project_id, flow, urlOf(request)))

  mount(createAuthConnection, async ({ caller, body, request }) =>
    record(await connections.create(caller.projectId, body), request),
  )

  mount(listAuthConnections, async ({ caller, query, request }) => {
    const { profile_name: profileName, domain, query: text } = query
    const { items, hasMore } = await connections.list({ projectId: caller.projectId, profileName, domain, text }, query)
    return { items: await Promise.all(items.map((item) => record(item, request))), hasMore }
  })

  mountForHandoffs(getAuthConnection, async ({ caller, params, request }) =>
    record(await connections.getWithFlow(caller.projectId, own(caller, params.id)), request),
  )

  mount(updateAuthConnection, async ({ caller, params, body, request }) =>
    record(await connections.update(caller.projectId, params.id, body), request),
  )

  mount(deleteAuthConnection, ({ caller, params }) => connections.delete(caller.projectId, params.id))

  mount(loginAuthConnection, async ({ caller, params, body, request }) => {
    const { connection, flow, code } = await flows.login(caller.projectId, params.id, body)
    return {
      id: connection.id,
      flow_type: flow.flow_type,
      hosted_url: hostedUrl(urlOf(request), connection.id, code),
      handoff_code: code,
      flow_expires_at: flow.expires_at.toISOString(),
    }
  })

  mountForHandoffs(submitAuthConnection, async ({ caller, params, body }) => {
    await flows.submit(caller.projectId, own(caller, params.id), body)
    return { accepted: true }
  })

  mountStreamForHandoffs(followAuthConnection, async ({ caller, params, request, signal }) => {
    const connection = await connections.get(caller.projectId, own(caller, params.id))
    return flows.follow(connection, { publicUrl: urlOf(request), signal })
  })

  mount(listAuthTimeline, async ({ caller, params, query }) => {
    const { items, hasMore } = await connections.listTimeline(caller.projectId, params.id, {
      type: query.type,
      page: query,
    })
    return { items: items.map(timelineRecord), hasMore }
  })

  mountPublic(app, exchangeHandoffCode, async ({ params, body }) => {
    const { flowId, token } = await flows.exchange(params.id, body.code)
    return { invocation_id: flowId, jwt: token }
  })
}

/** A hand-off token gives access to one connection. */
function own({ handoffConnectionId }: Caller, id: string): string {
  if (handoffConnectionId !== undefined && handoffConnectionId !== id) {
    throw new BerthError('auth_connection_not_found', { connection: id })
  }
  return id
}
