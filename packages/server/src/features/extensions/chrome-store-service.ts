import { createWriteStream } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { BerthError } from '@berth/contract/errors.ts'
import { maxExtensionBytes } from '@berth/contract/extensions/extension.ts'
import { BadArchive } from '@berth/runtime/archive/archive-entry.ts'
import { readZipOffset } from '@berth/runtime/archive/crx.ts'
import type { TemporaryFolder, TemporaryFolders } from '../../blobs/temporary-folders.ts'

interface ChromeStoreOptions {
  /** The address from which the store serves extensions. */
  readonly storeUrl: string
  readonly temporaryFolders: TemporaryFolders
}

type System = 'win' | 'mac' | 'linux'

const limitMilliseconds = 45_000
const maxRedirects = 3
/** The hosts to which Google's store redirects for the content. */
const contentHosts = ['clients2.googleusercontent.com']
/** The store serves the latest version that the client's Chromium can run. This number accepts any. */
const chromiumVersion = '9999.0.0.0'
const pageHosts = ['chromewebstore.google.com', 'chrome.google.com']

/** Downloads extensions from the Chrome Web Store. Never contacts other hosts. */
export class ChromeStoreService {
  readonly #options: ChromeStoreOptions

  constructor(options: ChromeStoreOptions) {
    this.#options = options
  }

  /** Returns the archive of the extension on a store page, without its signature. */
  async download(page: string, system: System, signal: AbortSignal): Promise<{ content: Readable; sizeBytes: number }> {
    const id = extensionIdOf(page)
    await using folder = await this.#options.temporaryFolders.make()
    try {
      const path = await this.#fetch(this.#addressOf(id, system), folder, signal)
      const start = await readZipOffset(path)
      const sizeBytes = (await stat(path)).size - start
      if (sizeBytes <= 0) throw refusal('its response ends before the archive')
      // An open file stays readable after its folder is removed.
      const file = await open(path)
      return { content: file.createReadStream({ start }), sizeBytes }
    } catch (error) {
      throw error instanceof BadArchive ? refusal(error.message, error) : error
    }
  }

  #addressOf(id: string, system: System): URL {
    const url = new URL(this.#options.storeUrl)
    const query = {
      response: 'redirect',
      os: system,
      arch: 'x86-64',
      os_arch: 'x86-64',
      prod: 'chromiumcrx',
      prodchannel: 'unknown',
      prodversion: chromiumVersion,
      acceptformat: 'crx3',
      x: `id=${id}&installsource=ondemand&uc`,
    }
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    return url
  }

  async #fetch(address: URL, folder: TemporaryFolder, signal: AbortSignal): Promise<string> {
    const either = AbortSignal.any([signal, AbortSignal.timeout(limitMilliseconds)])
    const path = join(folder.path, 'extension.crx')
    try {
      const response = await this.#follow(address, either)
      if (response.status !== 200 || !response.body) throw refusal(`it responds with status ${response.status}`)
      const content = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0])
      await pipeline(content, limited, createWriteStream(path))
      return path
    } catch (error) {
      if (error instanceof BerthError) throw error
      throw refusal(either.aborted ? 'it does not respond in time' : 'it cannot be reached', error)
    }
  }

  /** Follows redirects manually, because one could lead anywhere, including the operator's own network. */
  async #follow(address: URL, signal: AbortSignal): Promise<Response> {
    let url = address
    for (let redirects = 0; redirects <= maxRedirects; redirects++) {
      const response = await fetch(url, { redirect: 'manual', signal })
      const location = response.headers.get('location')
      if (response.status < 300 || response.status > 399 || location === null) return response
      await response.body?.cancel()
      const next = URL.parse(location, url)
      if (!next || !this.#isStoreHost(next)) throw refusal('it redirects to another host')
      url = next
    }
    throw refusal('it redirects too often')
  }

  #isStoreHost(url: URL): boolean {
    const store = new URL(this.#options.storeUrl)
    if (url.origin === store.origin) return true
    return store.hostname.endsWith('.google.com') && url.protocol === 'https:' && contentHosts.includes(url.host)
  }
}

async function* limited(content: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of content) {
    bytes += chunk.length
    if (bytes > maxExtensionBytes) throw refusal(`it is larger than ${maxExtensionBytes} bytes`)
    yield chunk
  }
}

/**
 * Accepts `https://chromewebstore.google.com/detail/name-of-it/<id>`, with or without the name, and the older
 * addresses.
 */
function extensionIdOf(page: string): string {
  const url = URL.parse(page)
  const isPage = url?.protocol === 'https:' && pageHosts.includes(url.host)
  const id = /^\/(?:webstore\/)?detail\/(?:[^/]+\/)?([a-p]{32})\/?$/.exec(url?.pathname ?? '')?.[1]
  if (isPage && id !== undefined) return id
  throw new BerthError('invalid_input', {
    reason: 'url: must be the page of an extension, https://chromewebstore.google.com/detail/<name>/<id>.',
  })
}

function refusal(reason: string, cause?: unknown): BerthError {
  return new BerthError('chrome_store_refused', { reason }, { cause })
}
