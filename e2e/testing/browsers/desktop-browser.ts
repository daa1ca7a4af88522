import { type Browser, chromium } from 'playwright-core'

/**
 * Of two flags with this name, Chromium uses the last. The first two features take a renderer for each window. The others
 * are those of Playwright's own flag that send requests to other hosts, or change the addresses of pages.
 */
const disabledFeatures = [
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'AimEnabled',
  'HttpsUpgrades',
  'HttpsFirstBalancedModeAutoEnable',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PreconnectToSearch',
]

/** Debian's Chromium on this host, as the browser of a person who uses berth. */
export function launchDesktopBrowser(): Promise<Browser> {
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  return chromium.launch({
    executablePath: '/usr/lib/chromium/chromium',
    args: [...args, `--disable-features=${disabledFeatures.join(',')}`],
  })
}
