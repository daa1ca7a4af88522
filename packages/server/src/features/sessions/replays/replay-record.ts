import type { BrowserReplay } from '@berth/contract/replays/replay.ts'
import type { ReplayTokens } from '../../../access/replay-tokens.ts'
import { replayViewUrl } from './replay-page.ts'
import type { Replay } from './replay-store.ts'

export type { Replay }

interface RecordOptions {
  readonly tokens: ReplayTokens
  /** The address where the caller reaches berth. */
  readonly publicUrl: string
}

/** Formats a recording for callers. */
export async function replayRecord(replay: Replay, { tokens, publicUrl }: RecordOptions): Promise<BrowserReplay> {
  const { id, started_at, finished_at, end_reason, expires_at } = replay
  return {
    replay_id: id,
    started_at: started_at.toISOString(),
    finished_at: finished_at?.toISOString() ?? null,
    replay_view_url: replayViewUrl(publicUrl, { id, token: await tokens.issue(id, started_at) }),
    ...(end_reason && { end_reason }),
    ...(expires_at && { expires_at: expires_at.toISOString() }),
  }
}
