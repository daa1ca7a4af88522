import type { FetchPageReply, FetchPageRequest } from '@berth/contract/agent/agent-endpoints.ts'
import type { Browser } from '../browser/browser.ts'
import { sendByBrowser } from '../curl/browser-request.ts'
import { HiddenPages } from '../curl/hidden-pages.ts'
import { renderPage } from './render-page.ts'

/** Fetches pages for the server: as sent by the site, or rendered. */
export class PageFetcher {
  readonly #browser: Browser
  readonly #pages: HiddenPages

  constructor(browser: Browser) {
    this.#browser = browser
    this.#pages = new HiddenPages(browser)
  }

  async fetch(request: FetchPageRequest, signal: AbortSignal): Promise<FetchPageReply> {
    if (request.mode === 'curl') return this.#curl(request, signal)
    const { pipe } = await this.#browser.running()
    return renderPage(pipe, request, signal)
  }

  async #curl(
    { url, timeout_ms, accept_language, max_bytes }: FetchPageRequest,
    signal: AbortSignal,
  ): Promise<FetchPageReply> {
    const answer = await sendByBrowser({
      pages: this.#pages,
      request: {
        url,
        method: 'GET',
        headers: accept_language === undefined ? [] : [['Accept-Language', accept_language]],
        body: undefined,
      },
      timeoutMilliseconds: timeout_ms,
      limits: 'whole',
      signal,
    })
    const contentType = answer.headers.find(([name]) => name.toLowerCase() === 'content-type')?.[1] ?? null
    const { bytes, isCut } = await readUpTo(answer.body, max_bytes)
    return {
      status: answer.status,
      content_type: contentType,
      final_url: answer.url,
      body_b64: bytes.toString('base64'),
      is_cut: isCut,
      is_loaded: true,
    }
  }
}

async function readUpTo(body: AsyncIterable<Buffer>, maxBytes: number): Promise<{ bytes: Buffer; isCut: boolean }> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of body) {
    chunks.push(chunk)
    length += chunk.length
    // Leaving the loop cancels the request.
    if (length > maxBytes) break
  }
  return { bytes: Buffer.concat(chunks).subarray(0, maxBytes), isCut: length > maxBytes }
}
