import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type {
  FillFormFieldsReply,
  FillFormFieldsRequest,
  FindFormFieldsReply,
  FindFormFieldsRequest,
} from '@berth/contract/agent/login/form-fill-endpoints.ts'
import type { FillErrorCode, FilledField } from '@berth/contract/vaults/item-operation.ts'
import type { SealingKeys } from '@berth/runtime/sealing/sealing-keys.ts'
import type { Browser } from '../browser/browser.ts'
import type { CdpPipe } from '../browser/cdp-pipe.ts'
import { CdpSecret } from '../browser/cdp-secret.ts'
import type { TargetSession } from '../browser/targets/target-session.ts'
import { TargetSessions } from '../browser/targets/target-sessions.ts'
import { readFrames } from '../webmcp/page-tools.ts'
import { type FoundInFrame, findElements, writeElement } from './in-page.ts'
import { type PageTargets, pageTargets } from './page-targets.ts'

const worldName = 'berth-fill'
const lookMilliseconds = 200

/** The document of a frame, in an isolated world of the agent. It lasts as long as the document. */
interface Frame {
  readonly session: TargetSession
  readonly contextId: number
}

interface FoundElement {
  readonly frame: Frame
  readonly origin: string
}

interface FoundForm {
  readonly id: string
  /** In the order of the selectors. */
  readonly elements: readonly FoundElement[]
}

type Missing = Extract<FindFormFieldsReply, { outcome: 'not_found' | 'invalid_selector' }>

/**
 * Finds elements in pages and writes values into them, in two steps, so that values arrive only after the elements are
 * known.
 */
export class FormFiller {
  readonly #browser: Browser
  readonly #keys: SealingKeys
  readonly #sessions = new TargetSessions()
  /** The server fills one form of a browser at a time. */
  #form: FoundForm | undefined

  constructor(browser: Browser, keys: SealingKeys) {
    this.#browser = browser
    this.#keys = keys
  }

  /** Waits for the elements until the time limit. */
  async find(request: FindFormFieldsRequest, signal: AbortSignal): Promise<FindFormFieldsReply> {
    const end = performance.now() + request.timeout_ms
    const pipe = await this.#browser.pipe()
    const pages = await pageTargets(pipe, request.page_url)
    const [page, ...others] = pages
    if (!page) return { outcome: 'no_page' }
    if (others.length > 0) return { outcome: 'several_pages' }
    for (;;) {
      const id = randomUUID()
      const late = { outcome: 'not_found', index: 0, error_code: 'timeout' } as const
      const looked = await within(end - performance.now(), this.#look(pipe, page, id, request.selectors), late)
      if (!('outcome' in looked)) {
        this.#form = { id, elements: looked }
        return { outcome: 'found', fill_id: id, page_url: page.url, origins: looked.map(({ origin }) => origin) }
      }
      const isOver = performance.now() + lookMilliseconds >= end
      if (isOver || signal.aborted || looked.outcome === 'invalid_selector') return looked
      await delay(lookMilliseconds)
    }
  }

  /** Searches all frames once. */
  async #look(
    pipe: CdpPipe,
    { targetId }: PageTargets,
    fillId: string,
    selectors: readonly string[],
  ): Promise<readonly FoundElement[] | Missing> {
    const frames = await this.#framesOf(pipe, targetId)
    if (!frames) return { outcome: 'not_found', index: 0, error_code: 'timeout' }
    const looks = await Promise.all(
      frames.map(async (frame) => ({ frame, answer: await lookIn(frame, fillId, selectors) })),
    )
    const elements: FoundElement[] = []
    for (const index of selectors.keys()) {
      const inFrames = looks.map(({ frame, answer }) => ({
        frame,
        origin: answer?.origin ?? '',
        of: answer?.found[index],
      }))
      if (inFrames.some(({ of }) => of?.isInvalid)) return { outcome: 'invalid_selector', index }
      const holders = inFrames.filter(({ of }) => (of?.editables ?? 0) > 0)
      const code = faultOf(
        holders,
        inFrames.some(({ of }) => (of?.matches ?? 0) > 0),
      )
      if (code !== undefined) return { outcome: 'not_found', index, error_code: code }
      const [{ frame, origin }] = holders as [(typeof holders)[0]]
      elements.push({ frame, origin })
    }
    return elements
  }

  /** Undefined if the page does not answer. Frames that do not answer are left out. */
  async #framesOf(pipe: CdpPipe, pageId: string): Promise<readonly Frame[] | undefined> {
    const [page] = await pageTargets(pipe, undefined, pageId)
    const targetIds = page ? [pageId, ...page.frameTargetIds] : []
    const ofTargets = await Promise.all(
      targetIds.map(async (targetId) => {
        const session = await this.#sessions.get(pipe, targetId).catch(() => undefined)
        const known = session && (await readFrames(session))
        return known && Promise.all(known.map(({ id }) => worldOf(session, id)))
      }),
    )
    if (!ofTargets[0]) return undefined
    return ofTargets.flatMap((frames) => frames ?? []).filter((frame) => frame !== undefined)
  }

  /** Stops at the first element that fails. */
  async fill({ fill_id, sealed_values, timeout_ms }: FillFormFieldsRequest): Promise<FillFormFieldsReply> {
    const form = this.#form
    const elements = form?.id === fill_id ? form.elements : []
    this.#form = undefined
    const end = performance.now() + timeout_ms
    const values = (await this.#keys.open(sealed_values)).map((json) => new CdpSecret(json))
    try {
      return await writeAll(values, { fillId: fill_id, elements, end })
    } finally {
      for (const value of values) value.overwrite()
    }
  }
}

interface WritingAll {
  readonly fillId: string
  readonly elements: readonly FoundElement[]
  readonly end: number
}

async function writeAll(
  values: readonly CdpSecret[],
  { fillId, elements, end }: WritingAll,
): Promise<FillFormFieldsReply> {
  const fields: FilledField[] = []
  for (const [index, value] of values.entries()) {
    const hasFailed = fields.some(({ status }) => status !== 'filled')
    fields.push(
      hasFailed
        ? { index, status: 'not_attempted' }
        : { index, ...(await write(elements[index]?.frame, { fillId, index, value, end })) },
    )
  }
  const isUnknown = fields.some(({ status }) => status === 'unknown')
  const isFilled = fields.every(({ status }) => status === 'filled')
  return { status: isFilled ? 'completed' : isUnknown ? 'unknown' : 'failed', fields }
}

interface Holder {
  readonly of: FoundInFrame['found'][number] | undefined
}

/** Why the selector does not match exactly one element of its own. */
function faultOf(holders: readonly Holder[], hasMatches: boolean): FillErrorCode | undefined {
  const [holder, ...others] = holders
  if (!holder?.of) return hasMatches ? 'element_not_editable' : 'element_not_found'
  const isOne = others.length === 0 && holder.of.editables === 1 && holder.of.sameAs === -1
  return isOne ? undefined : 'ambiguous_selector'
}

/** Undefined if the frame has closed meanwhile. */
async function worldOf(session: TargetSession, frameId: string): Promise<Frame | undefined> {
  const world = await session.send('Page.createIsolatedWorld', { frameId, worldName }).catch(() => undefined)
  return world && { session, contextId: world.executionContextId }
}

async function lookIn(
  { session, contextId }: Frame,
  fillId: string,
  selectors: readonly string[],
): Promise<FoundInFrame | undefined> {
  const answer = await session
    .send('Runtime.callFunctionOn', {
      functionDeclaration: findElements,
      executionContextId: contextId,
      arguments: [{ value: fillId }, { value: selectors }],
      returnByValue: true,
    })
    .catch(() => undefined)
  return answer?.exceptionDetails ? undefined : (answer?.result.value as FoundInFrame | undefined)
}

interface Writing {
  readonly fillId: string
  readonly index: number
  readonly value: CdpSecret
  readonly end: number
}

/** Chromium reports this before it runs any code. */
const isGone = (error: Error) => /Cannot find context/.test(error.message)

async function write(frame: Frame | undefined, writing: Writing): Promise<Omit<FilledField, 'index'>> {
  const { fillId, index, value, end } = writing
  const left = end - performance.now()
  if (!frame) return { status: 'failed', error_code: 'target_changed' }
  if (left <= 0) return { status: 'failed', error_code: 'timeout' }
  const written = frame.session
    .send(
      'Runtime.callFunctionOn',
      {
        functionDeclaration: writeElement,
        executionContextId: frame.contextId,
        arguments: [{ value: fillId }, { value: index }, { value }],
        returnByValue: true,
        userGesture: true,
      },
      left,
      value,
    )
    .then(
      ({ result, exceptionDetails }) => (exceptionDetails ? 'execution_failed' : String(result.value)),
      (error: Error) => (isGone(error) ? 'target_changed' : 'gone'),
    )
  const outcome = await within(left, written, 'late')
  if (outcome === 'filled') return { status: 'filled' }
  if (outcome === 'late') return { status: 'unknown', error_code: 'timeout' }
  if (outcome === 'gone') return { status: 'unknown', error_code: 'target_changed' }
  return { status: 'failed', error_code: outcome as FillErrorCode }
}

async function within<Value, Late>(milliseconds: number, work: Promise<Value>, late: Late): Promise<Value | Late> {
  const over = new AbortController()
  const timer = delay(Math.max(0, milliseconds), late, { ref: false, signal: over.signal })
  timer.catch(() => {})
  return Promise.race([work, timer]).finally(() => over.abort())
}
