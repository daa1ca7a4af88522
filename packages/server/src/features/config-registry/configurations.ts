import { defaultViewport } from '@berth/contract/browsers/viewport.ts'
import {
  type Recommendation,
  type RegistryBrowser,
  type RegistryProxy,
  registryProxyTypes,
} from '@berth/contract/config-registry/config-registry.ts'
import type { Configuration } from './analysis.ts'

/** A country in which the operator has proxies of a type. */
export interface ProxyOffer {
  readonly type: string
  readonly country: string | undefined
}

type Proxy = NonNullable<Configuration['proxy']>

/** From cheapest to most expensive: a headful browser takes several times the memory of a headless one. */
const browsers = [
  { headless: true, stealth: false },
  { headless: true, stealth: true },
  { headless: false, stealth: false },
  { headless: false, stealth: true },
] as const

export const directConfigurations: readonly Configuration[] = browsers
/** The most capable configuration. Pages of the others are compared with its page. */
export const referenceConfiguration: Configuration = browsers[3]

/** The operator's proxies in the countries, cheapest first. Without countries, all of them. */
export function offeredProxies(offers: readonly ProxyOffer[], countries: readonly string[] | null): readonly Proxy[] {
  return registryProxyTypes.flatMap((type) => {
    const places = new Set(offers.filter((offer) => offer.type === type).map(({ country }) => country))
    return (
      [...places]
        .filter((country) => (countries ? country !== undefined && countries.includes(country) : true))
        // An ISP proxy always has a country: if none is requested, the most common one.
        .filter((country) => country !== undefined || type !== 'isp')
        .map((country): Proxy => ({ type, ...(country !== undefined && { country }) }))
    )
  })
}

/** The cheapest and the most capable browser with each proxy. */
export function proxyConfigurations(proxies: readonly Proxy[]): readonly Configuration[] {
  return proxies.flatMap((proxy) => [
    { ...browsers[0], proxy },
    { ...browsers[3], proxy },
  ])
}

export function keyOf({ headless, stealth, proxy }: Configuration): string {
  const route = proxy ? `${proxy.type}:${proxy.country ?? '*'}` : 'direct'
  return `${headless ? 'headless' : 'headful'}${stealth ? '+stealth' : ''} ${route}`
}

/** The label for people. */
export function labelOf({ headless, stealth, proxy }: Configuration): string {
  const browser = `${headless ? 'headless' : 'headful'}${stealth ? ' + stealth' : ''}`
  return proxy ? `${browser}, ${[proxy.type, 'proxy', proxy.country].filter(Boolean).join(' ')}` : browser
}

/** For sorting: a proxy costs more than any browser, because its traffic is paid for. */
export function costOf({ headless, stealth, proxy }: Configuration): number {
  const route = proxy ? registryProxyTypes.indexOf(proxy.type) + 1 : 0
  return route * browsers.length + browsers.findIndex((one) => one.headless === headless && one.stealth === stealth)
}

/** Whether a caller that restricts countries may use it. */
export function isAllowed({ proxy }: Configuration, countries: readonly string[] | null): boolean {
  return !proxy || !countries || (proxy.country !== undefined && countries.includes(proxy.country))
}

export function browserOf({ headless, stealth }: Configuration): RegistryBrowser {
  return { gpu: false, headless, stealth, viewport: { ...defaultViewport } }
}

export function proxyOf({ proxy }: Configuration): RegistryProxy {
  if (!proxy) return { mode: 'direct' }
  const { type, country } = proxy
  return { mode: 'managed', create: { type, config: { ...(country !== undefined && { country }) } } }
}

export function configurationOf({ browser, proxy }: Pick<Recommendation, 'browser' | 'proxy'>): Configuration {
  const { headless, stealth } = browser
  if (proxy.mode === 'direct') return { headless, stealth }
  return { headless, stealth, proxy: { type: proxy.create.type, ...proxy.create.config } }
}
