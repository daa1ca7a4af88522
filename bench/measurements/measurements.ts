import type { MeasurementName } from '../measurement-names.ts'
import { measureComputer } from './browser/computer.ts'
import { measureEvaluate } from './browser/evaluate.ts'
import { measureLiveView } from './browser/live-view.ts'
import { measureMessages } from './browser/messages.ts'
import { measureNetwork } from './browser/network.ts'
import { measureReplays } from './browser/replays.ts'
import { measureScreenshots } from './browser/screenshots.ts'
import { measureTelemetry } from './browser/telemetry.ts'
import type { Measurement } from './measurement.ts'
import { measureApi } from './server/api.ts'
import { measureApps } from './server/apps.ts'
import { measureMcp } from './server/mcp.ts'
import { measureCreate } from './sessions/create.ts'
import { measureGrowth } from './sessions/growth.ts'
import { measureIdle } from './sessions/idle.ts'
import { measureMemory } from './sessions/memory.ts'
import { measureProfiles } from './sessions/profiles.ts'
import { measureReady } from './sessions/ready.ts'
import { measureStandby } from './sessions/standby.ts'

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
