import { EventEmitter } from 'node:events'
import type { CaptchaTask } from '@berth/contract/agent/agent-endpoints.ts'
import type { ProfileId, ProjectId, SessionId } from '@berth/contract/common/ids.ts'

/** How a create went. */
interface CreateOutcome {
  readonly milliseconds: number
  readonly isFromReserve: boolean
  readonly hasFailed: boolean
}

interface LifecycleEventMap {
  /** The machine of a session that runs has gone, or its agent has. Nobody of this server has asked for that. */
  machineEnded: [sessionId: SessionId]
  /** The session has no machine any more, and its row is final; or its start has failed, and it has no row. */
  sessionEnded: [sessionId: SessionId]
  /** The state or the settings of a session are others than before. */
  sessionChanged: [projectId: ProjectId, sessionId: SessionId]
  /** A create for a caller has ended, well or not. Refusals of what was asked for do not count. */
  createEnded: [projectId: ProjectId, outcome: CreateOutcome]
  /** A page of the session shows a challenge that its agent wants solved. */
  captchaFound: [sessionId: SessionId, task: CaptchaTask]
  /** A session that has ended has given the profile another state. */
  profileSaved: [profileId: ProfileId]
}

/** What becomes of this server's sessions and machines. Listeners answer for their own errors. */
export class LifecycleEvents extends EventEmitter<LifecycleEventMap> {}
