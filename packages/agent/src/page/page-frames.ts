import { BerthError } from '@berth/contract/errors.ts'
import type { Browser } from '../browser/browser.ts'
import type { CdpPipe } from '../browser/cdp-pipe.ts'
import type { TargetSession } from '../browser/targets/target-session.ts'
import { TargetSessions } from '../browser/targets/target-sessions.ts'
import { pageTargets } from '../form-fill/page-targets.ts'
import { readFrames } from '../webmcp/page-tools.ts'

const worldName = 'berth-page'
/** A page that takes longer is busy or stuck. */
export const answerLimitMilliseconds = 10_000

/** The document of a frame, in an isolated world of ours. */
export interface PageFrame {
  readonly session: TargetSession
  readonly frameId: string
  readonly url: string
  /** Empty for the page itself, otherwise like `f2`. */
  readonly prefix: string
  readonly contextId: number
  /** The target that contains the frame. */
  readonly targetId: string
}

interface World {
  readonly documentId: string
  readonly contextId: number
}

/** The frames of pages. Each document has one isolated world of ours, which stores the references of its elements. */
export class PageFrames {
  readonly #browser: Browser
  readonly #sessions = new TargetSessions()
  /** By frame id. */
  readonly #worlds = new Map<string, World>()
  readonly #prefixes = new Map<string, string>()
  #lastFrame = 0

  constructor(browser: Browser) {
    this.#browser = browser
  }

  async session(targetId: string): Promise<TargetSession> {
    return this.#sessions.get(await this.#browser.pipe(), targetId)
  }

  /**
   * The page's own frame first. Frames that do not answer are left out; if the page itself does not answer, it is an
   * error.
   */
  async of(targetId: string): Promise<readonly PageFrame[]> {
    const pipe = await this.#browser.pipe()
    const [page] = await pageTargets(pipe, undefined, targetId)
    if (!page) throw new BerthError('page_not_found')
    const frames = await Promise.all(
      [targetId, ...page.frameTargetIds].map((each) => this.#ofTarget(pipe, each, targetId)),
    )
    if (!frames[0]?.[0]) throw new BerthError('page_not_answering')
    return frames.flat()
  }

  /** The frame of a reference such as `f2e5`, and the number of the element in it. */
  async ofRef(targetId: string, ref: string): Promise<{ readonly frame: PageFrame; readonly number: number }> {
    const [, prefix = '', number] = /^(f\d+)?e(\d+)$/.exec(ref) ?? []
    const frames =
      prefix === '' ? await this.#ofTarget(await this.#browser.pipe(), targetId, targetId) : await this.of(targetId)
    const frame = frames.find((each) => each.prefix === prefix)
    if (!frame) throw new BerthError('element_not_found', { ref })
    return { frame, number: Number(number) }
  }

  async #ofTarget(pipe: CdpPipe, targetId: string, pageId: string): Promise<readonly PageFrame[]> {
    const session = await this.#sessions.get(pipe, targetId).catch(() => undefined)
    const frames = (session && (await readFrames(session))) ?? []
    const found = await Promise.all(
      frames.map(async ({ id, documentId, url }) => {
        const contextId = session && (await this.#worldOf(session, id, documentId))
        const prefix = id === pageId ? '' : this.#prefixOf(id)
        return session && contextId !== undefined ? [{ session, frameId: id, url, prefix, contextId, targetId }] : []
      }),
    )
    return found.flat()
  }

  /** Undefined if the frame has closed meanwhile. */
  async #worldOf(session: TargetSession, frameId: string, documentId: string): Promise<number | undefined> {
    const known = this.#worlds.get(frameId)
    if (known?.documentId === documentId) return known.contextId
    const made = await session.send('Page.createIsolatedWorld', { frameId, worldName }).catch(() => undefined)
    if (!made) return undefined
    this.#worlds.set(frameId, { documentId, contextId: made.executionContextId })
    if (this.#worlds.size > maxKept) this.#worlds.delete(this.#worlds.keys().next().value ?? '')
    return made.executionContextId
  }

  #prefixOf(frameId: string): string {
    const prefix = this.#prefixes.get(frameId) ?? `f${++this.#lastFrame}`
    this.#prefixes.set(frameId, prefix)
    if (this.#prefixes.size > maxKept) this.#prefixes.delete(this.#prefixes.keys().next().value ?? '')
    return prefix
  }

  /** The position of the frame in the page, in CSS pixels. */
  async offsetOf(
    { frameId, targetId }: PageFrame,
    pageId: string,
  ): Promise<{ readonly x: number; readonly y: number }> {
    if (frameId === pageId) return { x: 0, y: 0 }
    const isRoot = frameId === targetId
    const owners = isRoot
      ? (await this.of(pageId)).filter((each) => each.targetId !== targetId)
      : [{ session: await this.session(targetId), targetId }]
    for (const { session, targetId: ownerTarget } of owners) {
      const owner = await session.send('DOM.getFrameOwner', { frameId }).catch(() => undefined)
      if (!owner) continue
      const { model } = await session.send('DOM.getBoxModel', { backendNodeId: owner.backendNodeId })
      const [x = 0, y = 0] = model.content
      if (ownerTarget === pageId) return { x, y }
      const outer = await this.offsetOf({ frameId: ownerTarget, targetId: ownerTarget } as PageFrame, pageId)
      return { x: x + outer.x, y: y + outer.y }
    }
    throw new BerthError('page_not_answering')
  }
}

const maxKept = 1_000

export async function callIn<Result>(
  { session, contextId }: PageFrame,
  code: string,
  ...args: readonly unknown[]
): Promise<Result> {
  const { result, exceptionDetails } = await session
    .send(
      'Runtime.callFunctionOn',
      {
        functionDeclaration: code,
        executionContextId: contextId,
        arguments: args.map((value) => ({ value })),
        returnByValue: true,
        userGesture: true,
      },
      answerLimitMilliseconds,
    )
    .catch((cause: unknown) => {
      throw new BerthError('page_not_answering', undefined, { cause })
    })
  if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
  return result.value as Result
}
