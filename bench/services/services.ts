import { startBareChromium } from './bare-chromium.ts'
import { startBerth } from './berth.ts'
import type { StartService } from './service.ts'

/** What is measured, side by side. The first is what the others are held against. */
export const services: readonly StartService[] = [startBareChromium, startBerth]
