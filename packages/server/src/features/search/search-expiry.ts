import type { PageContents } from './contents/page-contents.ts'
import type { SearchService } from './search-service.ts'

interface SearchExpiryOptions {
  readonly searches: SearchService
  readonly pages: PageContents
}

/** Removes expired searches, and pages that are too old for any request. */
export class SearchExpiry {
  readonly #options: SearchExpiryOptions

  constructor(options: SearchExpiryOptions) {
    this.#options = options
  }

  async run(): Promise<void> {
    const { searches, pages } = this.#options
    await Promise.all([searches.removeExpired(), pages.removeOld()])
  }
}
