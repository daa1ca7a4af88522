import { newId, type ProjectId, type SearchId, type SessionId } from '@berth/contract/common/ids.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Search, SearchContents, SearchResult, SearchWarning } from '@berth/contract/search/search.ts'
import type { ContentOptions, ContentsRequest, SearchRequest } from '@berth/contract/search/search-request.ts'
import type { Clock } from '@berth/runtime/async/clock.ts'
import type { ProjectSecrets } from '../../secrets/project-secrets.ts'
import { chooseCandidates } from './choose-candidates.ts'
import { contentOfProvider } from './contents/content-record.ts'
import { type ContentTarget, defaultContent } from './contents/content-request.ts'
import type { ContentService } from './contents/content-service.ts'
import type { PageSessions } from './contents/page-sessions.ts'
import { postHocContents } from './contents/post-hoc-contents.ts'
import type { SearchConfig } from './providers/known-providers.ts'
import type { ProviderHit } from './providers/provider.ts'
import { withinBudget } from './result-budget.ts'
import { runStrategy } from './run-strategy.ts'
import type { SearchStore } from './search-store.ts'

const keptMilliseconds = 24 * 60 * 60 * 1000
/** Shorter than the minute after which official clients repeat a request. */
const defaultTimeoutMilliseconds = 55_000

interface SearchServiceOptions {
  readonly config: SearchConfig
  readonly store: SearchStore
  readonly secrets: ProjectSecrets
  readonly sessions: PageSessions
  readonly contents: ContentService
  readonly clock: Clock
}

/** The stored part of a search: the response, and what later requests for contents need. */
interface KeptSearch {
  readonly search: Search
  readonly language?: string
}

/** The rules of searches. */
export class SearchService {
  readonly #options: SearchServiceOptions

  constructor(options: SearchServiceOptions) {
    this.#options = options
  }

  async create(projectId: ProjectId, request: SearchRequest, signal: AbortSignal): Promise<Search> {
    const { config, store, secrets, clock } = this.#options
    const content = request.content === true ? defaultContent : request.content
    const sessionId = await this.#sessionOf(projectId, content)
    const deadline = AbortSignal.timeout(request.timeout_ms ?? defaultTimeoutMilliseconds)
    const { candidates, fallbackOn, warnings } = chooseCandidates(request, config.providers, clock.now())
    const { attemptLimitMilliseconds } = config
    const served = await runStrategy({ candidates, fallbackOn, attemptLimitMilliseconds, deadline, signal })

    const results = served.hits.map((hit, index) => resultOf(hit, index, request.include_raw))
    const targets = served.hits.map((hit, index) => ({
      ...targetOf(results[index] as SearchResult),
      provided: hit.content,
    }))
    const fetched = content
      ? await this.#options.contents.fetch({
          projectId,
          targets,
          options: content,
          sessionId,
          language: request.language,
          askProvider: postHocContents(served.candidate.access, content, { ...config, deadline, signal }),
          deadline,
          signal,
        })
      : { contents: served.hits.map((hit) => hit.content && contentOfProvider(hit.content, {}, null)), fetches: 0 }
    const cut = withinBudget(fetched.contents)

    const now = clock.now()
    const id = newId('search', now)
    const expiresAt = new Date(now.getTime() + keptMilliseconds)
    const search: Search = {
      id,
      query: request.query,
      provider: served.candidate.access.provider.slug,
      results: results.map((result, index) => ({ ...result, ...(cut[index] && { content: cut[index] }) })),
      attempts: [...served.attempts],
      usage: {
        content_fetches: fetched.fetches,
        results_count: results.length,
        ...(typeof served.cost === 'number' && { cost: served.cost }),
      },
      warnings: [...warnings, ...served.warnings, ...partialContents(targets, content ? cut : [])],
      expires_at: expiresAt.toISOString(),
      ...(served.answer && { answer: served.answer }),
      ...(request.include_raw && { raw: served.raw }),
    }
    const kept: KeptSearch = { search, ...(request.language !== undefined && { language: request.language }) }
    await store.insert({
      id,
      project_id: projectId,
      sealed_record: await secrets.seal(projectId, JSON.stringify(kept), contextOf(id)),
      created_at: now,
      expires_at: expiresAt,
    })
    return search
  }

  /** Returns the original response without a request to a provider. */
  async get(projectId: ProjectId, id: string): Promise<Search> {
    return (await this.#find(projectId, id)).search
  }

  /** The contents of results of an earlier search. They are not stored in the search. */
  async fetchContents(
    projectId: ProjectId,
    id: string,
    request: ContentsRequest,
    signal: AbortSignal,
  ): Promise<SearchContents> {
    const { contents, config } = this.#options
    const { search, language } = await this.#find(projectId, id)
    const content = request.content ?? defaultContent
    const access = config.providers.find(({ provider }) => provider.slug === search.provider)
    if (content.source === 'provider' && !access?.provider.postHoc) {
      const reason = `content.source: ${search.provider} returns no content for results of an earlier search.`
      throw new BerthError('invalid_input', { reason })
    }
    const sessionId = await this.#sessionOf(projectId, content)
    const targets = chosenResults(search, request)
    const deadline = AbortSignal.timeout(request.timeout_ms ?? defaultTimeoutMilliseconds)
    const fetched = await contents.fetch({
      projectId,
      targets,
      options: content,
      sessionId,
      language,
      askProvider: access && postHocContents(access, content, { ...config, deadline, signal }),
      deadline,
      signal,
    })
    const cut = withinBudget(fetched.contents)
    return {
      search_id: search.id,
      contents: targets.map(({ resultId, url }, index) => ({
        result_id: resultId,
        url,
        ...(cut[index] ?? { status: 'unavailable' as const }),
      })),
      usage: { content_fetches: fetched.fetches, results_count: targets.length },
      warnings: partialContents(targets, cut),
    }
  }

  async removeExpired(): Promise<void> {
    await this.#options.store.removeExpired(this.#options.clock.now())
  }

  async #find(projectId: ProjectId, id: string): Promise<KeptSearch> {
    const { store, secrets, clock } = this.#options
    const stored = await store.find(projectId, id, clock.now())
    if (!stored) throw new BerthError('search_not_found', { search: id })
    return JSON.parse(await secrets.unseal(projectId, stored.sealed_record, contextOf(stored.id)))
  }

  async #sessionOf(projectId: ProjectId, content: ContentOptions | undefined): Promise<SessionId | undefined> {
    const idOrName = content?.browser?.browser_id
    return idOrName === undefined ? undefined : this.#options.sessions.find(projectId, idOrName)
  }
}

function contextOf(id: SearchId): string {
  return `search ${id}`
}

function resultOf(hit: ProviderHit, index: number, includesRaw: boolean): SearchResult {
  const snippets = hit.additionalSnippets?.filter((text) => text !== '')
  return {
    id: `r${index + 1}`,
    rank: index + 1,
    url: hit.url,
    title: hit.title ?? null,
    snippet: hit.snippet ?? null,
    source: hit.source ?? URL.parse(hit.url)?.hostname ?? null,
    published_date: hit.publishedDate ?? null,
    ...(snippets?.length && { additional_snippets: snippets }),
    ...(includesRaw && { raw: hit.raw }),
  }
}

function targetOf({ id, url }: SearchResult): ContentTarget {
  return { resultId: id, url, provided: undefined }
}

/** The first results by rank, or the named ones in their order. */
function chosenResults({ results }: Search, { limit, result_ids }: ContentsRequest): readonly ContentTarget[] {
  if (!result_ids) return results.slice(0, limit).map(targetOf)
  return [...new Set(result_ids)].map((id) => {
    const result = results.find((one) => one.id === id)
    if (!result) throw new BerthError('invalid_input', { reason: `result_ids: the search has no result ${id}.` })
    return targetOf(result)
  })
}

function partialContents(
  targets: readonly ContentTarget[],
  contents: readonly (SearchResult['content'] | undefined)[],
): SearchWarning[] {
  return targets.flatMap(({ resultId }, index) => {
    const content = contents[index]
    if (!content || content.status === 'ok') return []
    const message = content.error?.message ?? 'There is no content.'
    return [{ code: 'content_partial', message, result_id: resultId }]
  })
}
