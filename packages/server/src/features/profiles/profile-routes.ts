import {
  createProfile,
  deleteProfile,
  downloadProfile,
  getProfile,
  listProfiles,
  updateProfile,
} from '@berth/contract/profiles/profile-endpoints.ts'
import type { MountForCallers } from '../../access/mount-for-callers.ts'
import { profileRecord } from './profile-record.ts'
import type { ProfileService } from './profile-service.ts'
import { unpackState } from './unpack-state.ts'

export function mountProfileRoutes(mount: MountForCallers, profiles: ProfileService): void {
  mount(createProfile, async ({ caller, body }) =>
    profileRecord(await profiles.create(caller.projectId, body.name ?? null)),
  )

  mount(listProfiles, async ({ caller, query }) => {
    const filter = { projectId: caller.projectId, text: query.query, name: query.name }
    const page = await profiles.list(filter, query)
    return { items: page.items.map(profileRecord), hasMore: page.hasMore }
  })

  mount(getProfile, async ({ caller, params }) =>
    profileRecord(await profiles.get(caller.projectId, params.id_or_name)),
  )

  mount(updateProfile, async ({ caller, params, body }) =>
    profileRecord(await profiles.rename(caller.projectId, params.id_or_name, body.name)),
  )

  mount(deleteProfile, ({ caller, params }) => profiles.delete(caller.projectId, params.id_or_name))

  mount(downloadProfile, async ({ caller, params, query }) => {
    const { id } = await profiles.get(caller.projectId, params.id_or_name)
    const state = await profiles.open(id)
    return state && { content: query.format === 'tar' ? unpackState(state) : state }
  })
}
