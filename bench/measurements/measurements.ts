import type { MeasurementName } from '../measurement-names.ts'
import { measureApi } from './api.ts'
import { measureApps } from './apps.ts'
import { measureComputer } from './computer.ts'
import { measureCreate } from './create.ts'
import { measureEvaluate } from './evaluate.ts'
import { measureGrowth } from './growth.ts'
import { measureIdle } from './idle.ts'
import { measureLiveView } from './live-view.ts'
import { measureMcp } from './mcp.ts'
import type { Measurement } from './measurement.ts'
import { measureMemory } from './memory.ts'
import { measureMessages } from './messages.ts'
import { measureNetwork } from './network.ts'
import { measureProfiles } from './profiles.ts'
import { measureReady } from './ready.ts'
import { measureReplays } from './replays.ts'
import { measureScreenshots } from './screenshots.ts'
import { measureStandby } from './standby.ts'
import { measureTelemetry } from './telemetry.ts'

export const measurements: Readonly<Record<MeasurementName, Measurement>> = {
  create: measureCreate,
  ready: measureReady,
  profiles: measureProfiles,
  standby: measureStandby,
  evaluate: measureEvaluate,
  messages: measureMessages,
  screenshots: measureScreenshots,
  network: measureNetwork,
  computer: measureComputer,
  telemetry: measureTelemetry,
  mcp: measureMcp,
  'live-view': measureLiveView,
  replays: measureReplays,
  memory: measureMemory,
  idle: measureIdle,
  api: measureApi,
  apps: measureApps,
  growth: measureGrowth,
}
