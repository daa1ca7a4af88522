import type { MeasurementName } from '../measurement-names.ts'
import { measureApi } from './api.ts'
import { measureComputer } from './computer.ts'
import { measureCreate } from './create.ts'
import { measureEvaluate } from './evaluate.ts'
import { measureGrowth } from './growth.ts'
import { measureIdle } from './idle.ts'
import { measureLiveView } from './live-view.ts'
import type { Measurement } from './measurement.ts'
import { measureMemory } from './memory.ts'
import { measureMessages } from './messages.ts'
import { measureNetwork } from './network.ts'
import { measureReady } from './ready.ts'
import { measureReplays } from './replays.ts'
import { measureScreenshots } from './screenshots.ts'

export const measurements: Readonly<Record<MeasurementName, Measurement>> = {
  create: measureCreate,
  ready: measureReady,
  evaluate: measureEvaluate,
  messages: measureMessages,
  screenshots: measureScreenshots,
  network: measureNetwork,
  computer: measureComputer,
  'live-view': measureLiveView,
  replays: measureReplays,
  memory: measureMemory,
  idle: measureIdle,
  api: measureApi,
  growth: measureGrowth,
}
