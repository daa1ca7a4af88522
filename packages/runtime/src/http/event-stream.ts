/** The head of a stream of server-sent events. A proxy that compresses, caches or collects it would hold the events back. */
export const eventStreamHeaders = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
  'x-sse-content-type': 'application/json',
} as const
