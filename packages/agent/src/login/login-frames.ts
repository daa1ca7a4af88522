import type { CdpPipe } from '../browser/cdp-pipe.ts'
import type { TargetSession } from '../browser/targets/target-session.ts'
import type { TargetSessions } from '../browser/targets/target-sessions.ts'
import { pageTargets } from '../form-fill/page-targets.ts'
import { readFrames } from '../webmcp/page-tools.ts'
import { type FrameReading, type PageReading, pageReading, type RawDocument } from './analysis/reading.ts'
import { isFrameShown } from './in-page/act-in-page.ts'
import { readPage } from './in-page/read-page.ts'
import { keepClosedRoots } from './in-page/shared.ts'

const worldName = 'berth-login'
/** A page that takes longer is busy and is read again. */
const readMilliseconds = 4_000
const maxFrames = 30

/** A document of a page, accessed in an isolated world of the agent. */
export interface LoginFrame {
  readonly session: TargetSession
  readonly contextId: number
  readonly frameId: string
  readonly documentId: string
  /** Whether it shares the process, and so the coordinates, of the page. */
  readonly isOfPage: boolean
}

export interface ReadPage {
  readonly reading: PageReading
  readonly frames: readonly LoginFrame[]
}

/** Reads all frames of a page. Undefined while the page does not answer. */
export async function readAllFrames(
  pipe: CdpPipe,
  sessions: TargetSessions,
  pageId: string,
): Promise<ReadPage | undefined> {
  const frames = await framesOf(pipe, sessions, pageId)
  if (!frames?.[0]) return undefined
  const documents = await Promise.all(frames.map(readDocument))
  if (!documents[0]) return undefined
  const shown = await Promise.all(
    frames.map(async (frame, index) => {
      const document = documents[index]
      if (!document || index === 0 || document.fields.length + document.controls.length === 0)
        return document !== undefined
      return isShown(frames[0] as LoginFrame, frame)
    }),
  )
  const readings = frames.flatMap((frame, index): readonly FrameReading[] => {
    const document = documents[index]
    return document && shown[index] ? [{ ...document, index, documentId: frame.documentId }] : []
  })
  return { reading: pageReading(pageId, readings), frames }
}

async function framesOf(
  pipe: CdpPipe,
  sessions: TargetSessions,
  pageId: string,
): Promise<readonly LoginFrame[] | undefined> {
  const [page] = await pageTargets(pipe, undefined, pageId)
  if (!page) return undefined
  const ofTargets = await Promise.all(
    [pageId, ...page.frameTargetIds].slice(0, maxFrames).map(async (targetId) => {
      const session = await sessions.get(pipe, targetId).catch(() => undefined)
      const known = session && (await readFrames(session))
      if (!known) return undefined
      return Promise.all(
        known.slice(0, maxFrames).map(async ({ id, documentId }): Promise<LoginFrame | undefined> => {
          const world = await session
            .send('Page.createIsolatedWorld', { frameId: id, worldName }, readMilliseconds)
            .catch(() => undefined)
          if (!world) return undefined
          const contextId = world.executionContextId
          return { session, contextId, frameId: id, documentId, isOfPage: targetId === pageId }
        }),
      )
    }),
  )
  if (!ofTargets[0]?.[0]) return undefined
  return ofTargets
    .flatMap((frames) => frames ?? [])
    .filter((frame) => frame !== undefined)
    .slice(0, maxFrames)
}

async function readDocument(frame: LoginFrame): Promise<RawDocument | undefined> {
  const document = await callIn<RawDocument>(frame, readPage, [], readMilliseconds)
  if (!document || document.hosts.length === 0) return document
  const hasOpened = await openClosedRoots(frame, document.hosts)
  return hasOpened ? callIn<RawDocument>(frame, readPage, [], readMilliseconds) : document
}

/** Returns whether there is a closed shadow tree that was not known. */
async function openClosedRoots(frame: LoginFrame, hosts: readonly number[]): Promise<boolean> {
  const { session, contextId } = frame
  const pairs = await Promise.all(
    hosts.map(async (place): Promise<readonly { objectId: string }[]> => {
      const expression = `globalThis.berthLogin.elements[${Number(place)}]`
      const host = await session.send('Runtime.evaluate', { expression, contextId }, readMilliseconds)
      const objectId = host.result.objectId
      if (objectId === undefined) return []
      const { node } = await session.send('DOM.describeNode', { objectId, depth: 0, pierce: true }, readMilliseconds)
      const closed = node.shadowRoots?.find(({ shadowRootType }) => shadowRootType === 'closed')
      if (!closed) return []
      const { backendNodeId } = closed
      const resolved = await session.send(
        'DOM.resolveNode',
        { backendNodeId, executionContextId: contextId },
        readMilliseconds,
      )
      return resolved.object.objectId === undefined ? [] : [{ objectId }, { objectId: resolved.object.objectId }]
    }),
  ).catch(() => [])
  const given = pairs.flat()
  if (given.length === 0) return false
  await session
    .send('Runtime.callFunctionOn', {
      functionDeclaration: keepClosedRoots,
      executionContextId: contextId,
      arguments: given,
    })
    .catch(() => {}) // The document has closed meanwhile.
  return true
}

/** Whether the frame is visible. Frames within frames of other processes are assumed to be. */
async function isShown(page: LoginFrame, { frameId }: LoginFrame): Promise<boolean> {
  const { session } = page
  try {
    const { backendNodeId } = await session.send('DOM.getFrameOwner', { frameId }, readMilliseconds)
    const { object } = await session.send('DOM.resolveNode', { backendNodeId }, readMilliseconds)
    if (object.objectId === undefined) return true
    const { result } = await session.send(
      'Runtime.callFunctionOn',
      { functionDeclaration: isFrameShown, objectId: object.objectId, returnByValue: true },
      readMilliseconds,
    )
    return result.value !== false
  } catch {
    return true
  }
}

/** Calls a function in the frame; undefined if the document has closed or the page does not answer. */
export async function callIn<Value>(
  { session, contextId }: Pick<LoginFrame, 'session' | 'contextId'>,
  functionDeclaration: string,
  values: readonly unknown[],
  limitMilliseconds = readMilliseconds,
): Promise<Value | undefined> {
  const answer = await session
    .send(
      'Runtime.callFunctionOn',
      {
        functionDeclaration,
        executionContextId: contextId,
        arguments: values.map((value) => ({ value })),
        returnByValue: true,
        userGesture: true,
      },
      limitMilliseconds,
    )
    .catch(() => undefined)
  return answer?.exceptionDetails ? undefined : (answer?.result.value as Value | undefined)
}
