import { StartError } from '../../start-error.ts'
import {
  knownProviders,
  neededSetting,
  type ProviderAccess,
  type SearchConfig,
  settingName,
} from './providers/known-providers.ts'

const attemptLimitMilliseconds = 15_000

/** The configured providers, in the order in which `auto` prefers them. */
export function readSearchConfig(text: (name: string) => string | undefined): SearchConfig {
  const setUp = knownProviders.flatMap((provider): ProviderAccess[] => {
    const { slug, defaultUrl } = provider
    const [keyName, urlName] = [settingName(slug, 'KEY'), settingName(slug, 'URL')]
    const [key, url] = [text(keyName), text(urlName)]
    if (key !== undefined && !/^[\x21-\x7e]+$/.test(key)) {
      throw new StartError(`${keyName} must contain only visible ASCII characters`, 64)
    }
    if (url !== undefined && !isAddress(url)) {
      throw new StartError(`${urlName} must be an http or https address without credentials`, 64)
    }
    const address = url ?? defaultUrl
    const needed = defaultUrl === undefined ? url : key
    if (needed === undefined && (key ?? url) !== undefined) {
      throw new StartError(
        `${key === undefined ? urlName : keyName} has no effect without ${neededSetting(provider)}`,
        64,
      )
    }
    return needed === undefined || address === undefined ? [] : [{ provider, url: address.replace(/\/+$/, ''), key }]
  })
  return { providers: inOrder(setUp, text('BERTH_SEARCH_ORDER')), attemptLimitMilliseconds }
}

function isAddress(text: string): boolean {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.username === '' && url.search === '' && url.hash === ''
}

/** Providers that are not in the list follow those that are. */
function inOrder(setUp: readonly ProviderAccess[], order: string | undefined): readonly ProviderAccess[] {
  if (order === undefined) return setUp
  const slugs = order.split(',').map((slug) => slug.trim())
  const unknown = slugs.find((slug) => !knownProviders.some((provider) => provider.slug === slug))
  if (unknown !== undefined) {
    throw new StartError(
      `BERTH_SEARCH_ORDER: ${unknown} must be one of ${knownProviders.map(({ slug }) => slug).join(', ')}`,
      64,
    )
  }
  const placeOf = ({ provider: { slug } }: ProviderAccess) =>
    slugs.includes(slug) ? slugs.indexOf(slug) : slugs.length
  return setUp.toSorted((one, other) => placeOf(one) - placeOf(other))
}
