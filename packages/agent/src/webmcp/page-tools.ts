import { setTimeout as delay } from 'node:timers/promises'
import type { WebMcpTool } from '@berth/contract/agent/operations/webmcp-operations.ts'
import type { TargetSession } from '../browser/targets/target-session.ts'

/** A page that takes longer is busy or stuck; its tools are left out. */
const answerLimitMilliseconds = 1_500
/** Limits the frames of a page, and the tools of a frame. */
const maxFrames = 200
const maxToolsOfFrame = 500
const maxToolBytes = 64 * 1024

/** An isolated world, which the page's changes to JavaScript do not affect. */
const worldName = 'berth'

/**
 * Runs in the frame. Chromium's list (`WebMCP.enable`) lacks titles and the tools of frames within a page; the page's
 * own list, which this queries, lacks only what forms declare.
 */
const listTools = `(async () => {
  const tools = (await document.modelContext?.getTools()) ?? []
  const forms = [...document.querySelectorAll('form[toolname]')]
  return JSON.stringify(
    tools
      .filter((tool) => tool.window === window)
      .slice(0, ${maxToolsOfFrame})
      .map(({ name, title, description, inputSchema, annotations }) => {
        const form = forms.find((form) => form.getAttribute('toolname') === name)
        const tool = { name, title, description, inputSchema, annotations, autosubmit: form?.hasAttribute('toolautosubmit') }
        return JSON.stringify(tool).length <= ${maxToolBytes} ? tool : undefined
      })
      .filter((tool) => tool !== undefined),
  )
})()`

interface ListedTool {
  readonly name: string
  readonly title?: string
  readonly description: string
  readonly inputSchema?: Record<string, unknown>
  readonly annotations?: Readonly<Record<string, boolean>>
  /** Absent for a tool that is not a form. */
  readonly autosubmit?: boolean
}

export interface PageTool {
  readonly tool: WebMcpTool
  /** A form that its user has to submit: the tool only fills it in. */
  readonly waitsForUser: boolean
}

export interface Frame {
  readonly id: string
  /** Changes with each document in the frame. */
  readonly documentId: string
  readonly url: string
}

/** The frames of the target, the main one first; undefined if the page does not answer. */
export async function readFrames(session: TargetSession): Promise<readonly Frame[] | undefined> {
  const answer = await inTime(session, session.send('Page.getFrameTree'))
  return answer && framesOf(answer.frameTree).slice(0, maxFrames)
}

/** The tools of the frame's own document; undefined if the page does not answer, or has just closed. */
export async function readTools(session: TargetSession, frameId: string): Promise<readonly PageTool[] | undefined> {
  return inTime(session, listIn(session, frameId))
}

async function listIn(session: TargetSession, frameId: string): Promise<readonly PageTool[]> {
  const { executionContextId: contextId } = await session.send('Page.createIsolatedWorld', { frameId, worldName })
  const evaluation = { contextId, expression: listTools, awaitPromise: true, returnByValue: true }
  const { result } = await session.send('Runtime.evaluate', evaluation)
  const { type, value } = result
  return type === 'string' ? (JSON.parse(value as string) as readonly ListedTool[]).map(pageTool) : []
}

function pageTool({ name, title, description, inputSchema, annotations, autosubmit }: ListedTool): PageTool {
  const hints = knownHints({ ...annotations, autosubmit })
  return {
    tool: {
      name,
      description,
      inputSchema: inputSchema ?? { type: 'object', properties: {} },
      ...(title && { title }),
      ...(Object.keys(hints).length > 0 && { annotations: hints }),
    },
    waitsForUser: autosubmit === false,
  }
}

const hintNames = [
  ...['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'],
  ...['consequentialHint', 'untrustedContentHint', 'autosubmit'],
]

/** Chromium has hints that the API does not have. */
function knownHints(hints: Readonly<Record<string, boolean | undefined>>): Record<string, boolean> {
  const known = hintNames.flatMap((name) => (typeof hints[name] === 'boolean' ? [[name, hints[name]]] : []))
  return Object.fromEntries(known)
}

interface FrameTree {
  readonly frame: { readonly id: string; readonly loaderId: string; readonly url: string }
  readonly childFrames?: readonly FrameTree[]
}

function framesOf({ frame, childFrames = [] }: FrameTree): readonly Frame[] {
  const { id, loaderId, url } = frame
  return [{ id, documentId: loaderId, url }, ...childFrames.flatMap(framesOf)]
}

async function inTime<Value>(session: TargetSession, asked: Promise<Value>): Promise<Value | undefined> {
  const late = delay(answerLimitMilliseconds, undefined, { ref: false })
  const answer = asked.catch(() => undefined) // The frame or target has closed meanwhile.
  return (await Promise.race([answer, session.lost, late])) ?? undefined
}
