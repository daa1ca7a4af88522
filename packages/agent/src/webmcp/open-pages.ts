import type { CdpPipe } from '../browser/cdp-pipe.ts'

export interface OpenPage {
  readonly targetId: string
  readonly title: string
  /** Without its fragment. */
  readonly url: string
  readonly windowId: number
  /** Frames of the page with a process and a target of their own. */
  readonly frameTargetIds: readonly string[]
}

interface TargetInfo {
  readonly targetId: string
  readonly type: string
  readonly title: string
  readonly url: string
  readonly parentId?: string
}

/** All pages with their targets. Only the browser is queried, not the pages. */
export async function openPages(pipe: CdpPipe): Promise<readonly OpenPage[]> {
  const { targetInfos: targets } = await pipe.send('Target.getTargets')
  const pages = targets.filter(({ type }) => type === 'page')
  return Promise.all(
    pages.map(async ({ targetId, title, url }) => ({
      targetId,
      title,
      url: withoutFragment(url),
      windowId: await windowOf(pipe, targetId),
      frameTargetIds: frameTargetsOf(targetId, targets),
    })),
  )
}

/** The targets of a page's frames that have a process of their own. */
export function frameTargetsOf(pageId: string, targets: readonly TargetInfo[]): readonly string[] {
  return targets.filter((target) => isWithin(target, pageId, targets)).map(({ targetId }) => targetId)
}

export function withoutFragment(url: string): string {
  return url.split('#', 1)[0] as string
}

/** A frame's target names its parent, so the chain of parents ends at the page. */
function isWithin(target: TargetInfo, pageId: string, targets: readonly TargetInfo[]): boolean {
  if (target.type !== 'iframe') return false
  const seen = new Set<TargetInfo>()
  for (let frame: TargetInfo | undefined = target; frame && !seen.has(frame); ) {
    if (frame.parentId === pageId) return true
    seen.add(frame)
    const { parentId }: TargetInfo = frame
    frame = targets.find(({ targetId }) => targetId === parentId)
  }
  return false
}

async function windowOf(pipe: CdpPipe, targetId: string): Promise<number> {
  const { windowId } = await pipe.send('Browser.getWindowForTarget', { targetId }).catch(() => ({ windowId: 0 }))
  return windowId
}
