import {
  createDeployment,
  createInvocation,
  deleteDeployment,
  deleteInvocationBrowsers,
  followDeployment,
  followInvocation,
  getDeployment,
  getInvocation,
  listApps,
  listDeployments,
  listInvocationBrowsers,
  listInvocations,
  updateInvocation,
} from '@berth/contract/apps/app-endpoints.ts'
import type { MountForCallers, MountStreamForCallers } from '../../access/mount-for-callers.ts'
import { publicUrlOf } from '../../access/public-url.ts'
import type { TemporaryFolders } from '../../blobs/temporary-folders.ts'
import type { SessionRecords } from '../sessions/records/session-record.ts'
import { appRecord, deploymentRecord, invocationRecord } from './app-records.ts'
import type { DeploymentService } from './deployments/deployment-service.ts'
import { receiveDeployment } from './deployments/receive-deployment.ts'
import type { InvocationService } from './invocations/invocation-service.ts'
import type { AppEvents } from './logs/app-events.ts'

interface AppRoutesOptions {
  readonly deployments: DeploymentService
  readonly invocations: InvocationService
  readonly appEvents: AppEvents
  readonly temporaryFolders: TemporaryFolders
  readonly records: SessionRecords
  readonly publicUrl: string | undefined
}

export function mountAppRoutes(
  mount: MountForCallers,
  mountStream: MountStreamForCallers,
  { deployments, invocations, appEvents, temporaryFolders, records, publicUrl }: AppRoutesOptions,
): void {
  mount(listApps, async ({ caller, query }) => {
    const filter = { projectId: caller.projectId, appName: query.app_name, version: query.version, text: query.query }
    const { items, hasMore } = await deployments.listApps(filter, query)
    return { items: items.map(appRecord), hasMore }
  })

  mount(createDeployment, async ({ caller, request }) => {
    await using folder = await temporaryFolders.make()
    return deploymentRecord(
      await deployments.create(caller.projectId, await receiveDeployment(request.raw, folder.path)),
    )
  })

  mount(listDeployments, async ({ caller, query }) => {
    const { app_name: appName, app_version: version, query: text } = query
    const { items, hasMore } = await deployments.list({ projectId: caller.projectId, appName, version, text }, query)
    return { items: items.map(deploymentRecord), hasMore }
  })

  mount(getDeployment, async ({ caller, params }) =>
    deploymentRecord(await deployments.get(caller.projectId, params.id)),
  )

  mount(deleteDeployment, ({ caller, params }) => deployments.delete(caller.projectId, params.id))

  mountStream(followDeployment, async ({ caller, params, query, signal }) =>
    appEvents.ofDeployment(await deployments.get(caller.projectId, params.id), { since: query.since, signal }),
  )

  mount(createInvocation, async ({ caller, body, setStatus }) => {
    const invocation = invocationRecord(await invocations.create(caller.projectId, body))
    if (body.async) setStatus(202)
    const { id, action_name, status, output, status_reason } = invocation
    return {
      id,
      action_name,
      status,
      ...(output !== undefined && { output }),
      ...(status_reason !== undefined && { status_reason }),
    }
  })

  mount(listInvocations, async ({ caller, query }) => {
    const filter = {
      projectId: caller.projectId,
      appName: query.app_name,
      version: query.version,
      actionName: query.action_name,
      deploymentId: query.deployment_id,
      status: query.status,
      since: query.since,
      text: query.query,
    }
    const { items, hasMore } = await invocations.list(filter, query)
    return { items: items.map(invocationRecord), hasMore }
  })

  mount(getInvocation, async ({ caller, params }) =>
    invocationRecord(await invocations.get(caller.projectId, params.id)),
  )

  mount(updateInvocation, async ({ caller, params, body }) =>
    invocationRecord(await invocations.update(caller.projectId, params.id, body)),
  )

  mount(listInvocationBrowsers, async ({ caller, params, request }) => {
    const sessions = await invocations.listSessions(caller.projectId, params.id)
    return { browsers: [...(await records.writeAll(sessions, publicUrlOf(request.raw, publicUrl)))] }
  })

  mount(deleteInvocationBrowsers, ({ caller, params }) => invocations.deleteSessions(caller.projectId, params.id))

  mountStream(followInvocation, async ({ caller, params, query, signal }) =>
    appEvents.ofInvocation(await invocations.get(caller.projectId, params.id), { since: query.since, signal }),
  )
}
