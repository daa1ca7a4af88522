import type { InvocationId, ProjectId } from '@berth/contract/common/ids.ts'
import { endInvocationSessions } from '../../../jobs/declared-jobs.ts'
import type { JobQueue } from '../../../jobs/job-runner.ts'
import type { Session, SessionService } from '../../sessions/session-service.ts'

interface InvocationSessionsOptions {
  readonly sessions: SessionService
  readonly jobs: JobQueue
}

/** The sessions that were created within invocations. */
export class InvocationSessions {
  readonly #options: InvocationSessionsOptions

  constructor(options: InvocationSessionsOptions) {
    this.#options = options
  }

  list(projectId: ProjectId, id: InvocationId): Promise<readonly Session[]> {
    return this.#options.sessions.listOfInvocation(projectId, id)
  }

  /** Resolves when the sessions of this server have ended and other servers were asked to end theirs. */
  async end(projectId: ProjectId, id: InvocationId): Promise<void> {
    const { sessions, jobs } = this.#options
    const others = await sessions.deleteOfInvocation(projectId, id)
    const data = { projectId, invocationId: id }
    await Promise.all(others.map((server) => jobs.enqueue(endInvocationSessions, data, { server })))
  }

  /** Ends the sessions of this server. */
  async endOwn(projectId: ProjectId, id: InvocationId): Promise<void> {
    await this.#options.sessions.deleteOfInvocation(projectId, id)
  }
}
