import type { BrowserReplay } from '@berth/contract/replays/replay.ts'
import { listReplays } from '@berth/contract/replays/replay-endpoints.ts'
import { useQuery } from '@tanstack/react-query'
import { call } from '../../api/client.ts'

export function useReplays(id: string) {
  return useQuery({
    queryKey: ['session', id, 'replays'],
    queryFn: () => call(listReplays, { params: { id_or_name: id } }),
    retry: false,
  })
}

/** The finished recording that contains this time, if any. */
export function seekTo(replays: readonly BrowserReplay[], at: number): BrowserReplay | undefined {
  return replays.find(({ started_at, finished_at }) => {
    if (started_at === null || finished_at === null) return false
    return at >= new Date(started_at).getTime() && at <= new Date(finished_at).getTime()
  })
}

/** The video of a recording's page. */
export function videoUrl({ replay_view_url }: BrowserReplay): string {
  const { pathname, search } = new URL(replay_view_url)
  return pathname.replace(/view$/, 'video') + search
}
