import { downloadReplay, listReplays, startReplay, stopReplay } from '@berth/contract/replays/replay-endpoints.ts'
import type { FastifyRequest } from 'fastify'
import type { MountForCallers } from '../../../access/mount-for-callers.ts'
import { publicUrlOf } from '../../../access/public-url.ts'
import type { ReplayTokens } from '../../../access/replay-tokens.ts'
import { rangeResponse } from '../../../blobs/part-content.ts'
import { type Replay, replayRecord } from './replay-record.ts'
import type { ReplayService } from './replay-service.ts'

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
  const record = (replay: Replay, request: FastifyRequest) =>
    replayRecord(replay, { tokens: replayTokens, publicUrl: publicUrlOf(request.raw, publicUrl) })

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
