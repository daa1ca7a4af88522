import { followProject, type ListName } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { follow } from '../api/client.ts'
import { keepFollowing } from '../api/keep-following.ts'
import { listKey } from '../api/list-key.ts'
import { useChosenProject } from '../api/use-project.ts'

/** Changes within this time cause a single read. */
const gatherMilliseconds = 250
/** No list is read more often than this. */
const pauseMilliseconds = 1000

/** Other lists that show the items of a list. */
const alsoShown: Partial<Record<ListName, readonly ListName[]>> = { deployments: ['apps'] }

/** Refetches what the page shows when berth reports a change. */
export function useProjectChanges(): void {
  const queries = useQueryClient()
  const project = useChosenProject()
  // biome-ignore lint/correctness/useExhaustiveDependencies: another project has other changes.
  useEffect(() => {
    const leaving = new AbortController()
    void followChanges(queries, leaving.signal)
    return () => leaving.abort()
  }, [queries, project])
}

async function followChanges(queries: QueryClient, signal: AbortSignal): Promise<void> {
  const changes = new GatheredChanges(queries)
  signal.addEventListener('abort', () => changes.drop())
  await keepFollowing(signal, async (visible) => {
    for await (const { sessions, lists, more } of follow(followProject, { signal: visible })) {
      for (const kind of ['session', 'thumbnail']) for (const id of sessions) changes.add([kind, id])
      // Pools show counts of sessions.
      if (sessions.length > 0) for (const key of [['sessions'], listKey('pools')]) changes.add(key)
      for (const list of lists) for (const each of [list, ...(alsoShown[list] ?? [])]) changes.add(listKey(each))
      if (more) for (const kind of ['sessions', 'session', 'list']) changes.add([kind])
    }
  })
}

/** Keys of outdated queries. Only those visible on the page are refetched immediately. */
class GatheredChanges {
  readonly #queries: QueryClient
  readonly #keys = new Map<string, readonly string[]>()
  #timer: ReturnType<typeof setTimeout> | undefined
  #readAt = 0

  constructor(queries: QueryClient) {
    this.#queries = queries
  }

  add(key: readonly string[]): void {
    this.#keys.set(key.join(' '), key)
    const pause = Math.max(gatherMilliseconds, this.#readAt + pauseMilliseconds - performance.now())
    this.#timer ??= setTimeout(() => this.#read(), pause)
  }

  drop(): void {
    clearTimeout(this.#timer)
  }

  #read(): void {
    this.#timer = undefined
    this.#readAt = performance.now()
    for (const queryKey of this.#keys.values()) void this.#queries.invalidateQueries({ queryKey })
    this.#keys.clear()
  }
}
