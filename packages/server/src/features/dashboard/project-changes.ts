import type { OrganizationId, ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import type { ListName, ProjectChange } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { Changes } from '@berth/runtime/async/changes.ts'
import type { Caller } from '../../access/caller.ts'

const maxFollowersOfProject = 50
/** The limit of changes that a slow reader has not received. Beyond it, the reader is told to reload everything. */
const maxPending = 100

interface Follower {
  readonly sessions: Set<SessionId>
  readonly lists: Set<ListName>
  hasMore: boolean
  readonly changes: Changes
}

/**
 * Selects the readers of a change: those that follow the project, or any project of the organization with a key of the
 * whole organization.
 */
export interface ListOwner {
  readonly project?: ProjectId | undefined
  readonly organization?: OrganizationId | undefined
}

/** Notifies open dashboards of changed sessions and lists of their project. */
export class ProjectChanges {
  readonly #followers = new Map<ProjectId | OrganizationId, Set<Follower>>()
  readonly #closing = new AbortController()

  /** Ends all streams. */
  close(): void {
    this.#closing.abort()
  }

  follow(
    { projectId, organizationId, keyProjectId }: Pick<Caller, 'projectId' | 'organizationId' | 'keyProjectId'>,
    reader: AbortSignal,
  ): AsyncIterable<ProjectChange> {
    const signal = AbortSignal.any([reader, this.#closing.signal])
    if ((this.#followers.get(projectId)?.size ?? 0) >= maxFollowersOfProject) {
      throw new BerthError('too_many_viewers', {
        reason: `${maxFollowersOfProject} dashboards already follow this project, which is the limit.`,
      })
    }
    const follower: Follower = { sessions: new Set(), lists: new Set(), hasMore: false, changes: new Changes() }
    this.#add(projectId, follower, signal)
    // Only keys of the whole organization see the organization's lists.
    if (keyProjectId === null) this.#add(organizationId, follower, signal)
    return changesOf(follower, signal)
  }

  #add(owner: ProjectId | OrganizationId, follower: Follower, signal: AbortSignal): void {
    const followers = this.#followers.get(owner) ?? new Set()
    followers.add(follower)
    this.#followers.set(owner, followers)
    signal.addEventListener('abort', () => {
      followers.delete(follower)
      if (followers.size === 0 && this.#followers.get(owner) === followers) this.#followers.delete(owner)
    })
  }

  /** Reports a change of a session's row. */
  note(projectId: ProjectId, sessionId: SessionId): void {
    for (const follower of this.#followers.get(projectId) ?? []) {
      if (follower.sessions.size < maxPending) follower.sessions.add(sessionId)
      else follower.hasMore = true
      follower.changes.notify()
    }
  }

  /** Reports an inserted, changed or deleted row of a list. */
  noteList(list: ListName, { project, organization }: ListOwner): void {
    for (const owner of [project, organization]) {
      for (const follower of (owner && this.#followers.get(owner)) ?? []) {
        follower.lists.add(list)
        follower.changes.notify()
      }
    }
  }

  /** Call when changes may have been missed. */
  noteAll(): void {
    for (const follower of [...this.#followers.values()].flatMap((followers) => [...followers])) {
      follower.hasMore = true
      follower.changes.notify()
    }
  }
}

async function* changesOf(follower: Follower, signal: AbortSignal): AsyncGenerator<ProjectChange> {
  const { sessions, lists, changes } = follower
  // The first event tells the reader that nothing is missed from now on.
  yield { sessions: [], lists: [], more: true }
  while (!signal.aborted) {
    if (sessions.size + lists.size === 0 && !follower.hasMore) await changes.next(signal)
    if (signal.aborted) return
    const change = { sessions: [...sessions], lists: [...lists], more: follower.hasMore }
    sessions.clear()
    lists.clear()
    follower.hasMore = false
    yield change
  }
}
