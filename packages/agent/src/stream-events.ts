import type { ServerResponse } from 'node:http'
import type { AgentEvent } from '@berth/contract/agent/agent-endpoints.ts'
import type { AgentEvents } from './agent-events.ts'

/** A browser is given up long before it has crashed so often while nobody reads. */
const maxWaiting = 1_000

/**
 * Sends every event as a line of JSON. To a reader that is slow each crash is told in the end, and of states the last
 * one alone; one that reads nothing for ever is let go, asks again, and then learns the current state.
 */
export function streamEvents(events: AgentEvents, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  let waiting: AgentEvent[] = []
  const flush = () => {
    while (waiting.length > 0 && !response.writableNeedDrain) response.write(`${JSON.stringify(waiting.shift())}\n`)
  }
  const unwatch = events.watch((event) => {
    if (event.event === 'state') waiting = waiting.filter((other) => other.event !== 'state')
    waiting.push(event)
    if (waiting.length > maxWaiting) response.destroy()
    else flush()
  })
  response.on('drain', flush)
  response.on('close', unwatch)
}
