import { EventEmitter } from 'node:events'
import type { CaptchaTask } from '@berth/contract/agent/agent-endpoints.ts'
import type { ProfileId, ProjectId, SessionId } from '@berth/contract/common/ids.ts'

/** The result of a create. */
interface CreateOutcome {
  readonly milliseconds: number
  readonly isFromReserve: boolean
  readonly hasFailed: boolean
}

interface LifecycleEventMap {
  /** The machine or the agent of a running session is gone, without a request of this server. */
  machineEnded: [sessionId: SessionId]
  /** The session has no machine any more and its row is final; or its start has failed and it has no row. */
  sessionEnded: [sessionId: SessionId]
  /** The state or the settings of a session have changed. */
  sessionChanged: [projectId: ProjectId, sessionId: SessionId]
  /** A create for a caller has succeeded or failed. Excludes rejected requests. */
  createEnded: [projectId: ProjectId, outcome: CreateOutcome]
  /** A page shows a captcha that the agent wants solved. */
  captchaFound: [sessionId: SessionId, task: CaptchaTask]
  /** An ended session has changed the saved state of the profile. */
  profileSaved: [profileId: ProfileId]
}

/** Events of this server's sessions and machines. Listeners handle their own errors. */
export class LifecycleEvents extends EventEmitter<LifecycleEventMap> {}
