import { followProject } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import { type QueryClient, useQueryClient } from '@tanstack/react-query'
import { useEffect } from 'react'
import { follow } from '../api/client.ts'
import { useChosenProject } from '../api/use-project.ts'

const retryMilliseconds = 3000
/** Many changes at once are read once. */
const gatherMilliseconds = 250

/** Reads sessions again when berth says that they have changed. */
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
  let timer: ReturnType<typeof setTimeout> | undefined
  signal.addEventListener('abort', () => clearTimeout(timer))
  const gathered = new Set<string>()
  const refresh = () => {
    timer = undefined
    void queries.invalidateQueries({ queryKey: ['sessions'] })
    for (const id of gathered) void queries.invalidateQueries({ queryKey: ['session', id] })
    gathered.clear()
  }
  while (!signal.aborted) {
    try {
      for await (const change of follow(followProject, { signal })) {
        for (const id of change.sessions) gathered.add(id)
        timer ??= setTimeout(refresh, gatherMilliseconds)
      }
    } catch {
      // A connection that broke off is opened again; whoever is signed out sees it on the page.
    }
    if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, retryMilliseconds))
  }
}
