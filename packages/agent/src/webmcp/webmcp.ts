import type {
  InvokeWebMcpTool,
  LiveWebMcpTool,
  WebMcpInvocation,
  WebMcpTool,
} from '@berth/contract/agent/webmcp-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Browser } from '../browser/browser.ts'
import type { CdpPipe } from '../browser/cdp-pipe.ts'
import { TargetSessions } from '../browser/target-sessions.ts'
import { invokePageTool } from './invoke-page-tool.ts'
import { type OpenPage, openPages, withoutFragment } from './open-pages.ts'
import { type Frame, readFrames, readTools } from './page-tools.ts'
import { ToolRefs } from './tool-refs.ts'

/** The tools that pages offer to agents, in all tabs and frames. */
export class WebMcp {
  readonly #browser: Browser
  readonly #refs = new ToolRefs()
  readonly #sessions = new TargetSessions()
  readonly #tabIds = new Map<string, number>()

  constructor(browser: Browser) {
    this.#browser = browser
  }

  async list({ includesCustom }: { readonly includesCustom: boolean }): Promise<readonly LiveWebMcpTool[]> {
    const pipe = await this.#browser.pipe()
    const pages = await openPages(pipe)
    if (pages.length === 0) throw new BerthError('page_not_found')
    void includesCustom
    const tools = await Promise.all(pages.map((page) => this.#toolsOf(pipe, page)))
    return tools.flat()
  }

  async invoke(asked: InvokeWebMcpTool, signal: AbortSignal): Promise<WebMcpInvocation> {
    const place = this.#refs.find(asked.tool_ref)
    if (!place) throw new BerthError('tool_not_found')
    const session = await this.#sessions.get(await this.#browser.pipe(), place.targetId).catch((cause) => {
      throw new BerthError('tool_not_found', undefined, { cause })
    })
    return invokePageTool(session, place, { input: asked.input ?? {}, timeoutSeconds: asked.timeout_sec, signal })
  }

  async #toolsOf(pipe: CdpPipe, page: OpenPage): Promise<readonly LiveWebMcpTool[]> {
    const targetIds = [page.targetId, ...page.frameTargetIds]
    const tools = await Promise.all(targetIds.map((targetId) => this.#toolsOfTarget(pipe, page, targetId)))
    return tools.flat()
  }

  async #toolsOfTarget(pipe: CdpPipe, page: OpenPage, targetId: string): Promise<readonly LiveWebMcpTool[]> {
    const session = await this.#sessions.get(pipe, targetId).catch(() => undefined)
    const frames = session && (await readFrames(session))
    if (!frames) return []
    const tools = await Promise.all(
      frames.map(async (frame) => {
        const found = (await readTools(session, frame.id)) ?? []
        return found.map(({ tool }) => this.#liveTool(tool, { page, targetId, frame }))
      }),
    )
    return tools.flat()
  }

  #liveTool(tool: WebMcpTool, { page, targetId, frame }: Whereabouts): LiveWebMcpTool {
    return {
      tool_ref: this.#refs.refOf({ targetId, frameId: frame.id, documentId: frame.documentId, name: tool.name }),
      tool,
      source: {
        window_id: page.windowId,
        tab_id: this.#tabId(page.targetId),
        target_id: page.targetId,
        page_title: page.title,
        page_url: page.url,
        frame: frame.id === page.targetId ? null : { frame_id: frame.id, url: withoutFragment(frame.url) },
      },
    }
  }

  /** Chromium's own numbers of tabs do not reach CDP. */
  #tabId(targetId: string): number {
    const known = this.#tabIds.get(targetId) ?? this.#tabIds.size + 1
    this.#tabIds.set(targetId, known)
    return known
  }
}

interface Whereabouts {
  readonly page: OpenPage
  readonly targetId: string
  readonly frame: Frame
}
