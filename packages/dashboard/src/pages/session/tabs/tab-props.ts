import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { Telemetry } from '../use-telemetry.ts'

export interface TabProps {
  readonly session: Browser
  readonly telemetry: Telemetry
}
