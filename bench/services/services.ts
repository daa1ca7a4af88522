import { startBareChromium } from './bare-chromium.ts'
import { startBerth } from './berth.ts'
import type { StartService } from './service.ts'

/** The services to measure. The others are compared with the first. */
export const services: readonly StartService[] = [startBareChromium, startBerth]
