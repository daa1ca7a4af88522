import {
  type BrowserTelemetryCategoriesConfig,
  type BrowserTelemetryConfig,
  type BrowserTelemetryRequestConfig,
  operationalCategories,
  telemetryCategories,
} from '@berth/contract/browsers/telemetry-config.ts'

/** The telemetry that a new session captures. Null if it captures none. */
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
 * The telemetry of a session after an update, or undefined if it does not change. The export destination is fixed at
 * creation.
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

/** Adds the export destination. */
export function withDestination(
  config: BrowserTelemetryConfig | null,
  destination: string | null,
): BrowserTelemetryConfig | null {
  return config && destination !== null ? { ...config, export: { otlp: { enabled: true, destination } } } : config
}

function isAnyOn(browser: BrowserTelemetryCategoriesConfig): boolean {
  return telemetryCategories.some((category) => browser[category]?.enabled)
}

/** Operational categories are on by default, others off. */
function defaultSelection(): BrowserTelemetryCategoriesConfig {
  const operational: readonly string[] = operationalCategories
  return Object.fromEntries(
    telemetryCategories.map((category) => [category, { enabled: operational.includes(category) }]),
  )
}

/** A category without `enabled` counts as on. `cdp` is merged separately. */
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
  // Exclusions stay until a new list is given, which may be empty.
  const cdp = { ...base.control?.cdp, ...asked?.control?.cdp }
  if (layered.control && Object.keys(cdp).length > 0) layered.control = { ...layered.control, cdp }
  return layered
}
