import { invocationHeader } from '@berth/contract/apps/invocation-header.ts'
import {
  createBrowser,
  deleteBrowser,
  getBrowser,
  listBrowsers,
  updateBrowser,
} from '@berth/contract/browsers/browser-endpoints.ts'
import { getLiveView } from '@berth/contract/browsers/live-view-endpoints.ts'
import type { FastifyRequest } from 'fastify'
import type { MountForCallers } from '../../access/mount-for-callers.ts'
import { publicUrlOf } from '../../access/public-url.ts'
import type { InvocationService } from '../apps/invocations/invocation-service.ts'
import type { SessionCreator } from './create/create-session.ts'
import type { Session } from './records/session.ts'
import type { SessionRecords } from './records/session-record.ts'
import type { SessionService } from './session-service.ts'
import type { SessionUpdater } from './update/update-session.ts'

interface SessionRoutesOptions {
  readonly creator: SessionCreator
  readonly sessions: SessionService
  readonly updater: SessionUpdater
  readonly records: SessionRecords
  readonly invocations: InvocationService
  readonly publicUrl: string | undefined
}

export function mountSessionRoutes(
  mount: MountForCallers,
  { creator, sessions, updater, records, invocations, publicUrl }: SessionRoutesOptions,
): void {
  const record = (session: Session, request: FastifyRequest) =>
    records.write(session, publicUrlOf(request.raw, publicUrl))

  mount(createBrowser, async ({ caller, body, request, signal }) => {
    const { projectId } = caller
    // The process of an app may send the invocation in a header.
    const named = request.headers[invocationHeader]
    const invocation =
      body.invocation_id === undefined
        ? named && (await invocations.findRunning(projectId, String(named)))
        : (await invocations.getWhole(projectId, body.invocation_id)).id
    const session = await creator.create(projectId, { ...body, invocation_id: invocation || undefined }, signal)
    await invocations.admit(session)
    return record(session, request)
  })

  mount(listBrowsers, async ({ caller, query, request }) => {
    const status = query.status ?? (query.include_deleted ? 'all' : 'active')
    const filter = { projectId: caller.projectId, status, text: query.query, tags: query.tags, region: query.region }
    const page = await sessions.list(filter, query)
    const items = await records.writeAll(page.items, publicUrlOf(request.raw, publicUrl))
    return { items, hasMore: page.hasMore }
  })

  mount(getBrowser, async ({ caller, params, query, request }) =>
    record(await sessions.get(caller.projectId, params.id_or_name, query.include_deleted), request),
  )

  mount(getLiveView, async ({ caller, params, request }) => {
    const session = await sessions.get(caller.projectId, params.id_or_name, false)
    return records.liveView(session, publicUrlOf(request.raw, publicUrl))
  })

  mount(updateBrowser, async ({ caller, params, body, request }) =>
    record(await updater.update(caller.projectId, params.id_or_name, body), request),
  )

  mount(deleteBrowser, ({ caller, params }) => sessions.delete(caller.projectId, params.id_or_name))
}
