import { createHash } from 'node:crypto'
import type { ProjectId } from '@berth/contract/common/ids.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { ProjectSecrets } from '../../../secrets/project-secrets.ts'
import { extractorVersion } from '../extraction/extracted.ts'
import type { SearchStore } from '../search-store.ts'

const hourMilliseconds = 60 * 60 * 1000
const defaultMaxAgeHours = 24
/** The maximum age that a request can permit. */
const keptHours = 7 * 24

/** The text of a page in both formats. */
export interface PageContent {
  readonly markdown: string
  readonly text: string
  readonly method: 'browser_curl' | 'browser_render'
  readonly completeness: 'full_page' | 'excerpt' | 'unknown'
  readonly httpStatus: number
  readonly finalUrl: string
  /** RFC 3339. */
  readonly fetchedAt: string
}

/** What the content of a page depends on, in addition to its project. */
export interface PageKey {
  readonly url: string
  readonly mode: 'curl' | 'render' | undefined
  readonly language: string | undefined
}

interface PageContentsOptions {
  readonly store: SearchStore
  readonly secrets: ProjectSecrets
  readonly clock: Clock
}

/** The cache of pages that temporary browsers have fetched. Encrypted, and separate for each project. */
export class PageContents {
  readonly #options: PageContentsOptions

  constructor(options: PageContentsOptions) {
    this.#options = options
  }

  async find(projectId: ProjectId, key: PageKey, maxAgeHours = defaultMaxAgeHours): Promise<PageContent | undefined> {
    const { store, secrets, clock } = this.#options
    const since = new Date(clock.now().getTime() - maxAgeHours * hourMilliseconds)
    const hash = hashOf(key)
    const stored = await store.findPage(projectId, hash, since)
    return stored && JSON.parse(await secrets.unseal(projectId, stored.sealed_content, contextOf(hash)))
  }

  async put(projectId: ProjectId, key: PageKey, content: PageContent): Promise<void> {
    const { store, secrets } = this.#options
    const hash = hashOf(key)
    await store.putPage({
      project_id: projectId,
      page_key: hash,
      sealed_content: await secrets.seal(projectId, JSON.stringify(content), contextOf(hash)),
      fetched_at: new Date(content.fetchedAt),
    })
  }

  async removeOld(): Promise<void> {
    const { store, clock } = this.#options
    await store.removePagesBefore(new Date(clock.now().getTime() - keptHours * hourMilliseconds))
  }
}

function hashOf({ url, mode, language }: PageKey): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([extractorVersion, url, mode ?? '', language ?? '']))
    .digest()
}

function contextOf(hash: Buffer): string {
  return `page content ${hash.toString('hex')}`
}
