import { Readable } from 'node:stream'
import {
  followProject,
  getOverview,
  getThumbnail,
  signIn,
  signOut,
} from '@berth/contract/dashboard/dashboard-endpoints.ts'
import { mount } from '@berth/runtime/http/mount.ts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { requireDashboard, sessionCookie } from '../../access/dashboard-requests.ts'
import type { MountForCallers, MountForOrganizations, MountStreamForCallers } from '../../access/mount-for-callers.ts'
import { publicUrlOf } from '../../access/public-url.ts'
import { readBearer } from '../../access/session-credentials.ts'
import { clientAddressOf } from '../../cluster/forwarded-requests.ts'
import type { OverviewService } from './overview-service.ts'
import type { ProjectChanges } from './project-changes.ts'
import type { SignInService } from './sign-in-service.ts'
import type { ThumbnailService } from './thumbnail-service.ts'

interface DashboardRoutesOptions {
  readonly signIns: SignInService
  readonly projectChanges: ProjectChanges
  readonly thumbnails: ThumbnailService
  readonly overview: OverviewService
  readonly publicUrl: string | undefined
}

export function mountDashboardRoutes(
  app: FastifyInstance,
  mountForCallers: MountForCallers,
  mountForOrganizations: MountForOrganizations,
  mountStream: MountStreamForCallers,
  { signIns, projectChanges, thumbnails, overview, publicUrl }: DashboardRoutesOptions,
): void {
  const isSecure = ({ raw }: FastifyRequest) => publicUrlOf(raw, publicUrl).startsWith('https:')

  mount(
    app,
    signIn,
    async ({ body: { api_key, code = '' }, request, setHeaders }) => {
      const credential = api_key === undefined ? { code } : { apiKey: api_key }
      const { token, seconds, scope } = await signIns.signIn(credential, clientAddressOf(request.raw))
      const { projectId, ...caller } = scope
      // For the audit log.
      request.caller = { ...caller, keyProjectId: projectId, chosenProjectId: projectId }
      setHeaders({ 'set-cookie': sessionCookie(request.headers, token, { seconds, isSecure: isSecure(request) }) })
    },
    { onRequest: async ({ raw }) => requireDashboard(raw) },
  )

  mountForOrganizations(signOut, async ({ request, setHeaders }) => {
    await signIns.signOut(readBearer(request.headers.authorization) ?? '')
    setHeaders({ 'set-cookie': sessionCookie(request.headers, '', { seconds: 0, isSecure: isSecure(request) }) })
  })

  mountForCallers(getThumbnail, async ({ caller, params }) => {
    const jpeg = await thumbnails.get(caller.projectId, params.id_or_name)
    return jpeg && { content: Readable.from([jpeg]), sizeBytes: jpeg.length }
  })

  mountForCallers(getOverview, ({ caller }) => overview.get(caller))

  mountStream(followProject, async ({ caller, signal }) => projectChanges.follow(caller, signal))
}
