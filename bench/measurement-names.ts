/** All measurements, in the order in which they run. */
export const measurementNames = [
  'create',
  'ready',
  'profiles',
  'standby',
  'evaluate',
  'messages',
  'screenshots',
  'network',
  'computer',
  'telemetry',
  'mcp',
  'live-view',
  'replays',
  'memory',
  'idle',
  'api',
  'apps',
  'growth',
] as const
export type MeasurementName = (typeof measurementNames)[number]
