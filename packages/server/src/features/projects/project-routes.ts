import type { Endpoint } from '@berth/contract/endpoint.ts'
import { legacyAlias } from '@berth/contract/projects/legacy-alias.ts'
import {
  createProject,
  deleteProject,
  getProject,
  getProjectLimits,
  listProjects,
  updateProject,
  updateProjectLimits,
} from '@berth/contract/projects/project-endpoints.ts'
import type { MountForOrganizations } from '../../access/mount-for-callers.ts'
import { limitsRecord, projectRecord } from './project-record.ts'
import type { ProjectService } from './project-service.ts'

export function mountProjectRoutes(
  mountOne: MountForOrganizations,
  { projects }: { readonly projects: ProjectService },
): void {
  /** Mounts each endpoint at both of its paths. Rejects requests while projects are disabled. */
  const mount: MountForOrganizations = (endpoint, handler) => {
    const guarded: typeof handler = (call) => {
      projects.requireEnabled()
      return handler(call)
    }
    mountOne(endpoint, guarded)
    mountOne(legacyAlias(endpoint as Endpoint) as typeof endpoint, guarded)
  }

  mount(createProject, async ({ caller, body }) => projectRecord(await projects.create(caller, body.name)))

  mount(listProjects, async ({ caller, query }) => {
    const page = await projects.list(caller, { text: query.query, name: query.name }, query)
    return { items: page.items.map(projectRecord), hasMore: page.hasMore }
  })

  mount(getProject, async ({ caller, params }) => projectRecord(await projects.get(caller, params.id_or_name)))

  mount(updateProject, async ({ caller, params, body }) =>
    projectRecord(await projects.update(caller, params.id_or_name, body)),
  )

  mount(deleteProject, ({ caller, params }) => projects.delete(caller, params.id_or_name))

  mount(getProjectLimits, async ({ caller, params }) => limitsRecord(await projects.get(caller, params.id_or_name)))

  mount(updateProjectLimits, async ({ caller, params, body }) =>
    limitsRecord(await projects.setLimits(caller, params.id_or_name, body)),
  )
}
