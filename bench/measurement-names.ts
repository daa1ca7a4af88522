/** All that can be measured, in this order. */
export const measurementNames = [
  'create',
  'evaluate',
  'messages',
  'screenshots',
  'network',
  'computer',
  'memory',
  'idle',
  'api',
  'growth',
] as const
export type MeasurementName = (typeof measurementNames)[number]
