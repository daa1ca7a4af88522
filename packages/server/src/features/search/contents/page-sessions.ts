import type { FetchPageReply, FetchPageRequest } from '@berth/contract/agent/agent-endpoints.ts'
import type { BrowserRequest } from '@berth/contract/browsers/browser.ts'
import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'

export interface FetchPageLimits {
  readonly limitMilliseconds: number
  readonly maxAnswerBytes: number
  readonly signal: AbortSignal
}

/** The operations on sessions that fetching pages needs. */
export interface PageSessions {
  /** Finds an active session of the project by id or name. Rejects with `session_not_found` if there is none. */
  find(projectId: ProjectId, idOrName: string): Promise<SessionId>
  create(projectId: ProjectId, request: BrowserRequest, signal: AbortSignal): Promise<SessionId>
  end(id: SessionId): Promise<void>
  fetchPage(id: SessionId, request: FetchPageRequest, limits: FetchPageLimits): Promise<FetchPageReply>
}
