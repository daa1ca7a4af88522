import type {
  AddCustomWebMcpTools,
  CustomWebMcpTool,
  InvokeWebMcpTool,
  LiveWebMcpTool,
  WebMcpInvocation,
  WebMcpTool,
} from '@berth/contract/agent/operations/webmcp-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Browser } from '../browser/browser.ts'
import type { CdpPipe } from '../browser/cdp-pipe.ts'
import type { TargetSession } from '../browser/targets/target-session.ts'
import { TargetSessions } from '../browser/targets/target-sessions.ts'
import { executeInPage, executeInProcess, readDefinitions } from './custom-tool-runs.ts'
import { type CustomTool, CustomTools, publicTool } from './custom-tools.ts'
import { type Invocation, invokePageTool } from './invoke-page-tool.ts'
import { type OpenPage, openPages, withoutFragment } from './open-pages.ts'
import { type Frame, readFrames, readTools } from './page-tools.ts'
import type { ToolProcess } from './tool-process.ts'
import { type ToolPlace, ToolRefs } from './tool-refs.ts'
import { matchesUrl } from './url-patterns.ts'

interface WebMcpOptions {
  readonly browser: Browser
  /** Created when the first custom tool is added. */
  readonly process: () => ToolProcess
}

/** The tools that pages offer to agents in all tabs and frames, and those that callers have added. */
export class WebMcp {
  readonly #browser: Browser
  readonly #process: () => ToolProcess
  readonly #custom = new CustomTools()
  readonly #refs = new ToolRefs()
  readonly #sessions = new TargetSessions()
  readonly #tabIds = new Map<string, number>()

  constructor({ browser, process }: WebMcpOptions) {
    this.#browser = browser
    this.#process = process
  }

  async list({ includesCustom }: { readonly includesCustom: boolean }): Promise<readonly LiveWebMcpTool[]> {
    const pipe = await this.#browser.pipe()
    const pages = await openPages(pipe)
    if (pages.length === 0) throw new BerthError('page_not_found')
    const tools = await Promise.all(pages.map((page) => this.#toolsOf(pipe, page, includesCustom)))
    return tools.flat()
  }

  async invoke(asked: InvokeWebMcpTool, signal: AbortSignal): Promise<WebMcpInvocation> {
    const place = this.#refs.find(asked.tool_ref)
    if (!place) throw new BerthError('tool_not_found')
    const pipe = await this.#browser.pipe()
    const session = await this.#sessions.get(pipe, place.targetId).catch((cause) => {
      throw new BerthError('tool_not_found', undefined, { cause })
    })
    const invocation = { input: asked.input ?? {}, timeoutSeconds: asked.timeout_sec, signal }
    if (place.customId === undefined) return invokePageTool(session, place, invocation)
    return this.#invokeCustom(pipe, session, place, invocation)
  }

  listCustom(): readonly CustomWebMcpTool[] {
    return this.#custom.list().map(publicTool)
  }

  async addCustom(asked: AddCustomWebMcpTools, signal: AbortSignal): Promise<readonly CustomWebMcpTool[]> {
    const definitions = await readDefinitions(this.#process(), asked, signal)
    return this.#custom.add(asked, definitions).map(publicTool)
  }

  removeCustom(id: string): void {
    this.#custom.remove(id)
  }

  async #toolsOf(pipe: CdpPipe, page: OpenPage, includesCustom: boolean): Promise<readonly LiveWebMcpTool[]> {
    const targetIds = [page.targetId, ...page.frameTargetIds]
    const tools = await Promise.all(
      targetIds.map(async (targetId) => {
        const session = await this.#sessions.get(pipe, targetId).catch(() => undefined)
        const frames = session && (await readFrames(session))
        if (!frames) return []
        const custom = includesCustom && targetId === page.targetId ? this.#customToolsOf(page, frames) : []
        return [...(await this.#ownToolsOf(session, frames, { page, targetId })), ...custom]
      }),
    )
    return tools.flat()
  }

  async #ownToolsOf(
    session: TargetSession,
    frames: readonly Frame[],
    target: Pick<Whereabouts, 'page' | 'targetId'>,
  ): Promise<readonly LiveWebMcpTool[]> {
    const tools = await Promise.all(
      frames.map(async (frame) => {
        const found = (await readTools(session, frame.id)) ?? []
        return found.map(({ tool }) => this.#liveTool(tool, { ...target, frame }))
      }),
    )
    return tools.flat()
  }

  #customToolsOf(page: OpenPage, [frame]: readonly Frame[]): readonly LiveWebMcpTool[] {
    if (!frame) return []
    const { targetId } = page
    return this.#custom
      .thatMatch(page.url)
      .map((custom) => this.#liveTool(custom.tool, { page, targetId, frame, custom }))
  }

  #liveTool(tool: WebMcpTool, { page, targetId, frame, custom }: Whereabouts): LiveWebMcpTool {
    const place = { targetId, frameId: frame.id, documentId: frame.documentId, name: tool.name }
    return {
      tool_ref: this.#refs.refOf(custom ? { ...place, customId: custom.id } : place),
      tool,
      source: {
        window_id: page.windowId,
        tab_id: this.#tabId(page.targetId),
        target_id: page.targetId,
        page_title: page.title,
        page_url: page.url,
        frame: frame.id === page.targetId ? null : { frame_id: frame.id, url: withoutFragment(frame.url) },
        ...(custom && { custom: { id: custom.id, namespace: custom.namespace } }),
      },
    }
  }

  async #invokeCustom(
    pipe: CdpPipe,
    session: TargetSession,
    { customId = '', targetId, documentId }: ToolPlace,
    invocation: Invocation,
  ): Promise<WebMcpInvocation> {
    const custom = this.#custom.find(customId)
    const frames = await readFrames(session)
    if (!frames) throw new BerthError('page_not_answering')
    if (!custom || frames[0]?.documentId !== documentId) throw new BerthError('tool_not_found')
    if (custom.kind === 'page') return executeInPage(session, custom, invocation)
    const matches = (await openPages(pipe))
      .filter((page) => matchesUrl(custom.match.url_patterns, page.url))
      .map((page) => ({ targetId: page.targetId, url: page.url, title: page.title }))
    const chosenFirst = matches.sort(
      (one, other) => Number(other.targetId === targetId) - Number(one.targetId === targetId),
    )
    return executeInProcess(this.#process(), custom, chosenFirst, invocation)
  }

  /** CDP does not expose Chromium's own tab numbers. */
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
  readonly custom?: CustomTool
}
