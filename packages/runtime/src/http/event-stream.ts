/**
 * Headers of a stream of server-sent events. They keep proxies from compressing, caching or buffering it, which would
 * delay events.
 */
export const eventStreamHeaders = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
  'x-sse-content-type': 'application/json',
} as const
