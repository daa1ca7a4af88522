import type { Deployment } from '@berth/contract/apps/app.ts'
import { type DeploymentId, newId, type ProjectId } from '@berth/contract/common/ids.ts'
import { type ZipMember, zip } from '@berth/runtime/testing/zip.ts'
import { DeploymentStore } from '../features/apps/deployments/deployment-store.ts'
import { InvocationStore, type StoredInvocation } from '../features/apps/invocations/invocation-store.ts'
import type { ApiAnswer, TestProject, TestServer } from './server-test.ts'

export const appSource: readonly ZipMember[] = [{ name: 'index.ts', content: 'export {}' }]

export interface DeploymentFields {
  readonly [name: string]: string | Blob | undefined
}

/** Deployments and invocations without machines. */
export class TestApps {
  readonly #server: TestServer
  readonly #deployments: DeploymentStore
  readonly #invocations: InvocationStore

  constructor(server: TestServer) {
    this.#server = server
    this.#deployments = new DeploymentStore(server.database)
    this.#invocations = new InvocationStore(server.database)
  }

  /** Deploys the smallest source, with these fields. */
  async post<Body = { message: string }>(project: TestProject, fields: DeploymentFields): Promise<ApiAnswer<Body>> {
    const file = new Blob([new Uint8Array(zip(...appSource))])
    const all: DeploymentFields = { file, entrypoint_rel_path: 'index.ts', ...fields }
    const form = new FormData()
    for (const [name, value] of Object.entries(all)) if (value !== undefined) form.set(name, value)
    const response = await fetch(`${this.#server.url}/deployments`, {
      method: 'POST',
      headers: { authorization: `Bearer ${project.key}` },
      body: form,
    })
    return { status: response.status, body: (await response.json()) as Body } as ApiAnswer<Body>
  }

  /** A deployment that serves the app. */
  async serving(project: TestProject, name: string, version = 'latest', fields: DeploymentFields = {}) {
    const now = this.#server.clock.now()
    const { body } = await this.post<Deployment>(project, { version, ...fields })
    const id = body.id as DeploymentId
    await this.#deployments.claim(id, now)
    const stored = await this.#deployments.get(id)
    return { id, ...(await this.#deployments.publish(stored, [{ name, actions: ['act'] }], now)) }
  }

  /** An invocation in the state `running`, without a machine. */
  async running(
    project: TestProject,
    deployment: DeploymentId,
    app: string,
    fields: Partial<StoredInvocation> = {},
  ): Promise<StoredInvocation> {
    const now = this.#server.clock.now()
    const row = {
      id: newId('invocation', now),
      project_id: project.id as ProjectId,
      deployment_id: deployment,
      app_name: app,
      version: 'latest',
      action_name: 'act',
      status: 'running' as const,
      status_reason: null,
      payload: null,
      output: null,
      server_id: 'other',
      created_at: now,
      deadline: new Date(now.getTime() + 900_000),
      finished_at: null,
      ...fields,
    }
    return this.#invocations.insert(row, this.#server.database)
  }
}
