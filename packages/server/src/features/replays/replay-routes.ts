import type { BrowserReplay } from '@berth/contract/replays/replay.ts'
import { downloadReplay, listReplays, startReplay, stopReplay } from '@berth/contract/replays/replay-endpoints.ts'
import type { FastifyRequest } from 'fastify'
import type { MountForCallers } from '../../access/mount-for-callers.ts'
import { publicUrlOf } from '../../access/public-url.ts'
import type { ReplayTokens } from '../../access/replay-tokens.ts'
import { rangeResponse } from '../../blobs/part-content.ts'
import { replayViewUrl } from './replay-page.ts'
import type { ReplayService } from './replay-service.ts'
import type { Replay } from './replay-store.ts'

const retryAfterSeconds = 5

interface ReplayRoutesOptions {
  readonly replays: ReplayService
  readonly replayTokens: ReplayTokens
  readonly publicUrl: string | undefined
}

export function mountReplayRoutes(
  mount: MountForCallers,
  { replays, replayTokens, publicUrl }: ReplayRoutesOptions,
): void {
  const record = async (replay: Replay, request: FastifyRequest): Promise<BrowserReplay> => ({
    replay_id: replay.id,
    started_at: replay.started_at.toISOString(),
    finished_at: replay.finished_at?.toISOString() ?? null,
    replay_view_url: replayViewUrl(publicUrlOf(request.raw, publicUrl), {
      id: replay.id,
      token: await replayTokens.issue(replay.id, replay.started_at),
    }),
    ...(replay.end_reason && { end_reason: replay.end_reason }),
    ...(replay.expires_at && { expires_at: replay.expires_at.toISOString() }),
  })

  mount(startReplay, async ({ caller, params, body, request }) =>
    record(await replays.start({ projectId: caller.projectId, session: params.id_or_name }, body), request),
  )

  mount(listReplays, async ({ caller, params, request }) => {
    const list = await replays.list({ projectId: caller.projectId, session: params.id_or_name })
    return Promise.all(list.map((replay) => record(replay, request)))
  })

  mount(downloadReplay, async ({ caller, params, request, setHeaders }) => {
    const reference = { projectId: caller.projectId, session: params.id_or_name }
    const open = await replays.open(reference, params.replay_id)
    if (open) return rangeResponse(open, request.headers)
    setHeaders({ 'retry-after': `${retryAfterSeconds}` })
    return undefined
  })

  mount(stopReplay, ({ caller, params }) =>
    replays.stop({ projectId: caller.projectId, session: params.id_or_name }, params.replay_id),
  )
}
