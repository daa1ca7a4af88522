import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSearchConfig } from './search-config.ts'

const read = (environment: Readonly<Record<string, string>>) => readSearchConfig((name) => environment[name])
const slugs = (environment: Readonly<Record<string, string>>) =>
  read(environment).providers.map(({ provider }) => provider.slug)

test('a provider is configured by its key, SearXNG by its address, and addresses can be changed', () => {
  assert.deepEqual(slugs({}), [])
  const { providers } = read({
    BERTH_SEARCH_SEARXNG_URL: 'http://127.0.0.1:8888/',
    BERTH_SEARCH_BRAVE_KEY: 'key',
    BERTH_SEARCH_TAVILY_KEY: 'key',
    BERTH_SEARCH_TAVILY_URL: 'https://proxy.test/tavily/',
  })
  assert.deepEqual(
    providers.map(({ provider, url, key }) => [provider.slug, url, key]),
    [
      ['brave', 'https://api.search.brave.com', 'key'],
      ['tavily', 'https://proxy.test/tavily', 'key'],
      ['searxng', 'http://127.0.0.1:8888', undefined],
    ],
  )
})

test('providers have the order of the operator, followed by the others', () => {
  const keys = { BERTH_SEARCH_BRAVE_KEY: 'k', BERTH_SEARCH_EXA_KEY: 'k', BERTH_SEARCH_YOU_KEY: 'k' }
  assert.deepEqual(slugs({ ...keys, BERTH_SEARCH_ORDER: 'you, exa' }), ['you', 'exa', 'brave'])
})

test('an invalid setting is rejected by name', () => {
  for (const [message, environment] of [
    [/BERTH_SEARCH_BRAVE_KEY must contain only visible/, { BERTH_SEARCH_BRAVE_KEY: 'a b' }],
    [/BERTH_SEARCH_SEARXNG_URL must be an http/, { BERTH_SEARCH_SEARXNG_URL: 'ftp://x/' }],
    [/BERTH_SEARCH_SEARXNG_URL must be an http/, { BERTH_SEARCH_SEARXNG_URL: 'http://u:p@x/' }],
    [/BERTH_SEARCH_EXA_URL has no effect without BERTH_SEARCH_EXA_KEY/, { BERTH_SEARCH_EXA_URL: 'http://x/' }],
    [/BERTH_SEARCH_SEARXNG_KEY has no effect/, { BERTH_SEARCH_SEARXNG_KEY: 'k' }],
    [/BERTH_SEARCH_ORDER: google must be one of brave/, { BERTH_SEARCH_ORDER: 'google' }],
  ] as const) {
    assert.throws(() => read(environment), message)
  }
})
