import type { SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { ContentStatus } from '@berth/contract/search/search.ts'
import { AgentRefusal } from '../../../agent-link/command-agent.ts'
import type { Extractor } from '../extraction/extractor.ts'
import type { PageSessions } from './page-sessions.ts'

const maxPageBytes = 8 * 1024 * 1024
/** The size in base64, with the rest of the response. */
const maxAnswerBytes = Math.ceil(maxPageBytes * 1.4)
/** Lets the agent report a timeout before the server does. */
const answerMilliseconds = 2_000
const minFetchMilliseconds = 500

export type Mode = 'curl' | 'render'

/** A page without text, with the reason. */
export interface PageFailure {
  readonly status: Exclude<ContentStatus, 'ok'>
  readonly code: string
  readonly message: string
  readonly retryable: boolean
  readonly httpStatus?: number
  readonly finalUrl?: string
}

export interface PageText {
  readonly markdown: string
  readonly text: string
  readonly completeness: 'full_page' | 'excerpt' | 'unknown'
  readonly httpStatus: number
  readonly finalUrl: string
  readonly needsScript: boolean
}

interface FetchOptions {
  readonly sessions: PageSessions
  readonly extractor: Extractor
  readonly sessionId: SessionId
  readonly url: string
  readonly mode: Mode
  readonly language: string | undefined
  readonly limitMilliseconds: number
  readonly signal: AbortSignal
}

/** Fetches a page with a session and extracts its text. Rejects only when the signal aborts, or because of a bug. */
export async function fetchPageText(options: FetchOptions): Promise<PageText | PageFailure> {
  const { extractor, url, mode, signal } = options
  const page = await fetchBytes(options)
  if ('code' in page) return page
  const { status: httpStatus, final_url: finalUrl, content_type, body_b64, is_cut, is_loaded } = page
  const where = { httpStatus, finalUrl }
  const document = {
    bytes: Buffer.from(body_b64, 'base64'),
    contentType: content_type ?? undefined,
    url: finalUrl || url,
  }
  const extraction = await extractor.extract(document, signal)
  const refusal = refusalOf(httpStatus)
  if (extraction.outcome === 'extracted' && extraction.isChallenge) {
    return {
      ...where,
      status: 'blocked',
      code: 'challenge',
      message: 'The site requires a captcha.',
      retryable: false,
    }
  }
  if (refusal) return { ...where, ...refusal }
  if (extraction.outcome === 'unsupported_type') {
    const message = `There is no text in documents of the type ${extraction.type.slice(0, 100)}.`
    return { ...where, status: 'unsupported_type', code: 'unsupported_type', message, retryable: false }
  }
  if (extraction.outcome === 'failed' || extraction.text === '') {
    const reason = extraction.outcome === 'failed' ? extraction.reason : 'there is no text'
    const message = `The page could not be read: ${reason}.`
    return { ...where, status: 'extraction_failed', code: 'extraction_failed', message, retryable: false }
  }
  const completeness = is_cut ? 'excerpt' : mode === 'render' && !is_loaded ? 'unknown' : 'full_page'
  const { markdown, text, needsScript } = extraction
  return { ...where, markdown, text, completeness, needsScript }
}

async function fetchBytes({ sessions, sessionId, url, mode, language, limitMilliseconds, signal }: FetchOptions) {
  const request = {
    url,
    mode,
    timeout_ms: Math.max(minFetchMilliseconds, Math.round(limitMilliseconds)),
    max_bytes: maxPageBytes,
    ...(language !== undefined && { accept_language: language }),
  }
  try {
    return await sessions.fetchPage(sessionId, request, {
      limitMilliseconds: request.timeout_ms + answerMilliseconds,
      maxAnswerBytes,
      signal,
    })
  } catch (error) {
    if (signal.aborted) throw signal.reason
    return failureOf(error)
  }
}

function failureOf(error: unknown): PageFailure {
  if (error instanceof AgentRefusal) {
    const name = /ERR_[A-Z0-9_]+/.exec(error.message)?.[0]
    if (name === 'ERR_TIMED_OUT' || name === 'ERR_CONNECTION_TIMED_OUT') {
      return { status: 'timeout', code: 'timeout', message: 'The page did not load in time.', retryable: true }
    }
    const message = name ? `The page could not be fetched: ${name}.` : 'The page could not be fetched.'
    return {
      status: 'error',
      code: name?.toLowerCase() ?? 'fetch_failed',
      message,
      retryable: name !== 'ERR_ADDRESS_UNREACHABLE',
    }
  }
  if (error instanceof BerthError) {
    return { status: 'error', code: error.code, message: error.message, retryable: true }
  }
  throw error
}

/** The failure for a status that shows no regular page. */
function refusalOf(httpStatus: number): PageFailure | undefined {
  if (httpStatus < 400) return undefined
  const failure = (status: PageFailure['status'], retryable: boolean): PageFailure => ({
    status,
    code: `http_${httpStatus}`,
    message: `The site responds with the status ${httpStatus}.`,
    retryable,
  })
  if (httpStatus === 429) return failure('blocked', true)
  if ([401, 402, 403, 451].includes(httpStatus)) return failure('blocked', false)
  if (httpStatus === 408 || httpStatus === 504) return failure('timeout', true)
  return failure('unavailable', httpStatus >= 500)
}
