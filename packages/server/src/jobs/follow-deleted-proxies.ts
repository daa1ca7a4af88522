import type { ProjectId, ProxyId, SessionId } from '@berth/contract/common/ids.ts'
import type { ProxyService } from '../features/proxies/proxy-service.ts'
import type { SessionStore } from '../features/sessions/records/session-store.ts'
import { detachProxy } from './declared-jobs.ts'
import type { JobQueue } from './job-runner.ts'

interface DeletedProxiesOptions {
  readonly proxies: ProxyService
  readonly sessions: SessionStore
  /** Applies the egress settings of the session's row. */
  readonly restore: (id: SessionId) => Promise<void>
  readonly serverId: string
  readonly jobs: JobQueue
}

/** Deletes proxies and updates the sessions that use them, on all servers. */
export class DeletedProxies {
  readonly #options: DeletedProxiesOptions

  constructor(options: DeletedProxiesOptions) {
    this.#options = options
  }

  /**
   * Resolves when the sessions of this server do not use it any more. The job updates starting sessions and those of
   * other servers.
   */
  async delete(projectId: ProjectId, idOrName: string): Promise<void> {
    const proxyId = await this.#options.proxies.delete(projectId, idOrName)
    await this.detach(proxyId).catch(() => {})
  }

  /** Enqueues a job for every server with such sessions. A session that starts later finds the proxy deleted. */
  async follow(proxyId: ProxyId): Promise<void> {
    const { sessions, jobs } = this.#options
    for (const server of await sessions.listServersUsingProxy(proxyId)) {
      await jobs.enqueue(detachProxy, { proxyId }, { server })
    }
  }

  /** Removes the proxy from the sessions of this server. */
  async detach(proxyId: ProxyId): Promise<void> {
    const { sessions, restore, serverId } = this.#options
    const users = await sessions.listUsersOfProxy(serverId, proxyId)
    await Promise.all(users.map((session) => restore(session.id)))
    // A starting session may have read its settings before, and can only be updated when it has started.
    if (users.some(({ state }) => state === 'starting'))
      throw new Error('a session that uses the proxy is still starting')
  }
}
