import {
  type BrowserTelemetryCategoriesConfig,
  type BrowserTelemetryConfig,
  type BrowserTelemetryRequestConfig,
  operationalCategories,
  telemetryCategories,
} from '@berth/contract/browsers/telemetry-config.ts'

/** What a new session captures; null when it captures nothing. */
export function selectTelemetry(
  request: BrowserTelemetryRequestConfig | null | undefined,
): BrowserTelemetryConfig | null {
  if (!request || request.enabled === false) return null
  if (request.enabled === undefined && !request.browser) return null

  const browser = layer(defaultSelection(), request.browser)
  if (!isAnyOn(browser)) return null
  return { browser, export: { otlp: { enabled: false } }, storage: { enabled: true } }
}

/**
 * What a running session captures after an update; undefined when that is what it captures now. Where its
 * events are exported to was decided when it was created.
 */
export function updateTelemetry(
  current: BrowserTelemetryConfig | null,
  request: BrowserTelemetryRequestConfig | null | undefined,
): BrowserTelemetryConfig | null | undefined {
  if (request?.enabled === false) return null
  if (!request?.enabled && !request?.browser) return undefined

  const selected = selectTelemetry(request)
  if (!current) return selected
  if (request.enabled) return selected && { ...current, browser: selected.browser }
  const browser = layer(current.browser, request.browser)
  return isAnyOn(browser) ? { ...current, browser } : null
}

/** The same, with where it is exported to. */
export function withDestination(
  config: BrowserTelemetryConfig | null,
  destination: string | null,
): BrowserTelemetryConfig | null {
  return config && destination !== null ? { ...config, export: { otlp: { enabled: true, destination } } } : config
}

function isAnyOn(browser: BrowserTelemetryCategoriesConfig): boolean {
  return telemetryCategories.some((category) => browser[category]?.enabled)
}

/** The operational categories are on unless somebody turns them off, the others off. */
function defaultSelection(): BrowserTelemetryCategoriesConfig {
  const operational: readonly string[] = operationalCategories
  return Object.fromEntries(
    telemetryCategories.map((category) => [category, { enabled: operational.includes(category) }]),
  )
}

/** A category that is named without `enabled` is meant to be on; `cdp` is merged on its own. */
function layer(
  base: BrowserTelemetryCategoriesConfig,
  asked: BrowserTelemetryCategoriesConfig | undefined,
): BrowserTelemetryCategoriesConfig {
  const layered = { ...base }
  for (const category of telemetryCategories) {
    const wish = asked?.[category]
    if (!wish) continue
    const named = category !== 'control' || asked?.control?.cdp === undefined
    layered[category] = {
      ...layered[category],
      ...wish,
      enabled: wish.enabled ?? (named || layered[category]?.enabled === true),
    }
  }
  // What is excluded stays so until a list is given, and an empty list is one.
  const cdp = { ...base.control?.cdp, ...asked?.control?.cdp }
  if (layered.control && Object.keys(cdp).length > 0) layered.control = { ...layered.control, cdp }
  return layered
}
