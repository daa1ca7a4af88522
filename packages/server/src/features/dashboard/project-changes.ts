import type { ProjectId, SessionId } from '@berth/contract/common/ids.ts'
import type { ProjectChange } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import { BerthError } from '@berth/contract/errors.ts'
import { Changes } from '@berth/runtime/async/changes.ts'

const maxFollowersOfProject = 50
/** Of changes that a reader has not taken. Beyond it the reader is told to read everything again. */
const maxPending = 100

interface Follower {
  readonly pending: Set<SessionId>
  hasMore: boolean
  readonly changes: Changes
}

/** Tells the open dashboards which sessions of their project have changed. */
export class ProjectChanges {
  readonly #followers = new Map<ProjectId, Set<Follower>>()
  readonly #closing = new AbortController()

  /** Ends all streams. */
  close(): void {
    this.#closing.abort()
  }

  follow(projectId: ProjectId, reader: AbortSignal): AsyncIterable<ProjectChange> {
    const signal = AbortSignal.any([reader, this.#closing.signal])
    const followers = this.#followers.get(projectId) ?? new Set()
    if (followers.size >= maxFollowersOfProject) {
      throw new BerthError('too_many_viewers', {
        reason: `${maxFollowersOfProject} dashboards follow this project already.`,
      })
    }
    const follower: Follower = { pending: new Set(), hasMore: false, changes: new Changes() }
    followers.add(follower)
    this.#followers.set(projectId, followers)
    signal.addEventListener('abort', () => {
      followers.delete(follower)
      if (followers.size === 0 && this.#followers.get(projectId) === followers) this.#followers.delete(projectId)
    })
    return changesOf(follower, signal)
  }

  /** The row of a session has changed. */
  note(projectId: ProjectId, sessionId: SessionId): void {
    for (const follower of this.#followers.get(projectId) ?? []) {
      if (follower.pending.size < maxPending) follower.pending.add(sessionId)
      else follower.hasMore = true
      follower.changes.notify()
    }
  }

  /** Changes may have been missed. */
  noteAll(): void {
    for (const follower of [...this.#followers.values()].flatMap((followers) => [...followers])) {
      follower.hasMore = true
      follower.changes.notify()
    }
  }
}

async function* changesOf(follower: Follower, signal: AbortSignal): AsyncGenerator<ProjectChange> {
  // The first event says that from now on nothing is missed.
  yield { sessions: [], more: true }
  while (!signal.aborted) {
    if (follower.pending.size === 0 && !follower.hasMore) await follower.changes.next(signal)
    if (signal.aborted) return
    const change = { sessions: [...follower.pending], more: follower.hasMore }
    follower.pending.clear()
    follower.hasMore = false
    yield change
  }
}
