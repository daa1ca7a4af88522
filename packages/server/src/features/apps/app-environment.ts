import type { DeploymentId, OrganizationId, ProjectId } from '@berth/contract/common/ids.ts'
import { hostName } from '@berth/contract/egress/machine-protocol.ts'
import type { ProjectSecrets } from '../../secrets/project-secrets.ts'
import type { ApiKeyService } from '../api-keys/api-key-service.ts'
import type { DeploymentStore, StoredDeployment } from './deployments/deployment-store.ts'
import { runtimeOf, runtimePlaces } from './machines/app-runtime.ts'
import { inMachine } from './machines/paths.ts'

interface AppEnvironmentOptions {
  readonly deployments: DeploymentStore
  readonly keys: ApiKeyService
  readonly organizationOf: (projectId: ProjectId) => Promise<OrganizationId>
  readonly secrets: ProjectSecrets
}

/** The environment variables for the code of a deployment: its own, and a key and the address of berth. */
export class AppEnvironment {
  readonly #options: AppEnvironmentOptions
  #address = ''

  constructor(options: AppEnvironmentOptions) {
    this.#options = options
  }

  /** The address where machines reach berth: the public address, unless it is an address of the host itself. */
  setAddress(port: number, publicUrl: string | undefined): void {
    const isLocal = publicUrl === undefined || /^(localhost|127\.|\[::1\])/.test(new URL(publicUrl).hostname)
    this.#address = isLocal ? `http://${hostName}:${port}` : publicUrl
  }

  async seal(projectId: ProjectId, id: DeploymentId, variables: Readonly<Record<string, string>>): Promise<Buffer> {
    return this.#options.secrets.seal(projectId, JSON.stringify(variables), `environment ${id}`)
  }

  async of(deployment: StoredDeployment): Promise<Readonly<Record<string, string>>> {
    const { secrets } = this.#options
    const { id, project_id: projectId, sealed_env, entrypoint } = deployment
    const own = JSON.parse(await secrets.unseal(projectId, sealed_env, `environment ${id}`)) as Record<string, string>
    return {
      PATH: `${runtimePlaces[runtimeOf(entrypoint)].programs}:${inMachine.programs}:/usr/local/bin:/usr/bin:/bin`,
      KERNEL_BASE_URL: this.#address,
      ...own,
      KERNEL_API_KEY: await this.#keyOf(deployment),
      ENTRYPOINT_RELPATH: entrypoint,
    }
  }

  /** Created at the first use, for the project only. Valid as long as the deployment. */
  async #keyOf({ id, project_id: projectId, sealed_key }: StoredDeployment): Promise<string> {
    const { deployments, keys, organizationOf, secrets } = this.#options
    if (sealed_key) return secrets.unseal(projectId, sealed_key, `key ${id}`)
    const organizationId = await organizationOf(projectId)
    const name = `deployment ${id}`
    const prepared = await keys.prepare(
      organizationId,
      { id: organizationId, name },
      { name, projectId, daysToExpire: undefined },
    )
    const sealedKey = await secrets.seal(projectId, prepared.key, `key ${id}`)
    const stored = await deployments.takeKey(id, async (database) => {
      const { id: keyId } = await prepared.insert(database)
      return { keyId, sealedKey }
    })
    return secrets.unseal(projectId, stored, `key ${id}`)
  }
}
