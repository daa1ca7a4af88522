import {
  createCredential,
  deleteCredential,
  getCredential,
  getTotpCode,
  listCredentials,
  updateCredential,
} from '@berth/contract/credentials/credential-endpoints.ts'
import type { MountForCallers } from '../../access/mount-for-callers.ts'
import { credentialRecord, listedCredential, writtenCredential } from './credential-record.ts'
import type { CredentialService } from './credential-service.ts'

export function mountCredentialRoutes(
  mount: MountForCallers,
  { credentials }: { readonly credentials: CredentialService },
): void {
  mount(createCredential, async ({ caller, body }) =>
    writtenCredential(await credentials.create(caller.projectId, body)),
  )

  mount(listCredentials, async ({ caller, query }) => {
    const filter = { projectId: caller.projectId, domain: query.domain, text: query.query }
    const page = await credentials.list(filter, query)
    return { items: page.items.map(listedCredential), hasMore: page.hasMore }
  })

  mount(getCredential, async ({ caller, params }) =>
    credentialRecord(await credentials.get(caller.projectId, params.id_or_name)),
  )

  mount(updateCredential, async ({ caller, params, body }) =>
    writtenCredential(await credentials.update(caller.projectId, params.id_or_name, body)),
  )

  mount(deleteCredential, ({ caller, params }) => credentials.delete(caller.projectId, params.id_or_name))

  mount(getTotpCode, async ({ caller, params }) => {
    const { code, expiresAt } = await credentials.totpCode(caller.projectId, params.id_or_name)
    return { code, expires_at: expiresAt.toISOString() }
  })
}
