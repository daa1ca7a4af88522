import type { CdpPipe } from '../browser/cdp-pipe.ts'
import { frameTargetsOf } from '../webmcp/open-pages.ts'

export interface PageTargets {
  readonly targetId: string
  readonly url: string
  /** Frames with a process of their own. */
  readonly frameTargetIds: readonly string[]
}

/** The pages with this URL or target id, or all pages. */
export async function pageTargets(
  pipe: CdpPipe,
  url: string | undefined,
  targetId?: string,
): Promise<readonly PageTargets[]> {
  const { targetInfos } = await pipe.send('Target.getTargets')
  return targetInfos
    .filter(({ type }) => type === 'page')
    .filter((page) => (url === undefined || page.url === url) && (targetId === undefined || page.targetId === targetId))
    .map((page) => ({
      targetId: page.targetId,
      url: page.url,
      frameTargetIds: frameTargetsOf(page.targetId, targetInfos),
    }))
}
