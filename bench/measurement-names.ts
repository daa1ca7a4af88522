/** All measurements, in the order in which they run. */
export const measurementNames = [
  'create',
  'ready',
  'evaluate',
  'messages',
  'screenshots',
  'network',
  'computer',
  'live-view',
  'replays',
  'memory',
  'idle',
  'api',
  'growth',
] as const
export type MeasurementName = (typeof measurementNames)[number]
