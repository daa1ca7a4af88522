import { setTimeout as delay } from 'node:timers/promises'
import type { CdpPipe } from '../cdp-pipe.ts'
import { TargetSession } from './target-session.ts'

/** A page that hangs in its unload handler closes later. */
const closeLimitMilliseconds = 3_000

/** Resolves when the tab is in no list any more. Rejects when there is none. */
export async function closeTab(pipe: CdpPipe, targetId: string): Promise<void> {
  // Chromium answers before it closes the tab, but detaches its clients when the tab has closed.
  const session = await TargetSession.attach(pipe, targetId)
  try {
    await pipe.send('Target.closeTarget', { targetId })
    await Promise.race([session.lost, delay(closeLimitMilliseconds, undefined, { ref: false })])
  } finally {
    session.detach()
  }
}
