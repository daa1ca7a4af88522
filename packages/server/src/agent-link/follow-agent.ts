import type { IncomingMessage } from 'node:http'
import { PassThrough, type Readable } from 'node:stream'
import type { Endpoint } from '@berth/contract/endpoint.ts'
import { eventDataOf } from '@berth/runtime/http/event-stream.ts'
import type { z } from 'zod'
import type { ReachableMachine } from '../drivers/driver.ts'
import { callAgent } from './agent-client.ts'
import type { EventRateLimiter } from './event-rate-limiter.ts'

/** The longest lines contain the last output of a program: 20 lines of 2,000 characters. */
const defaultMaxEventLength = 128 * 1024
/** The buffer for events that wait to be processed. Further ones stay in the machine. */
const maxWaitingBytes = 256 * 1024

interface FollowOptions {
  /** Includes the question mark. */
  readonly query?: string
  readonly signal: AbortSignal
  /** Events that exceed the rate limit wait in the machine. Pass the same limiter when the agent is followed again. */
  readonly pace: EventRateLimiter
  readonly maxEventLength?: number
}

/** Follows a stream of an agent until it ends or the signal aborts. Rejects at the first invalid event. */
export async function* followAgent<Event extends z.ZodType>(
  machine: ReachableMachine,
  stream: Endpoint<z.ZodType, z.ZodType, z.ZodType, Event>,
  { query = '', signal, pace, maxEventLength = defaultMaxEventLength }: FollowOptions,
): AsyncGenerator<z.output<Event>> {
  const { method, path, reply, status } = stream
  const response = await callAgent(machine, { method, path: `${path}${query}`, signal })
  if (response.statusCode !== status) {
    response.destroy()
    throw new Error(`it responds to ${path} with ${response.statusCode}`)
  }
  let unfinished = ''
  let endsEvent = false
  // With readline, an error of the stream would end the process.
  for await (const chunk of readToEnd(response)) {
    const lines = `${unfinished}${chunk}`.split('\n')
    unfinished = lines.pop() ?? ''
    for (const line of [...lines, unfinished]) {
      if (line.length > maxEventLength) throw new Error(`it sends an event of more than ${maxEventLength} characters`)
    }
    for (const line of lines) {
      const data = eventDataOf(line)
      if (data === undefined && line !== '' && !line.startsWith(':'))
        throw new Error('it sends a line that is not an event')
      // The empty line after an event costs nothing.
      if (line !== '' || !endsEvent) await pace.admit(line.length, signal)
      endsEvent = data !== undefined
      if (data !== undefined) yield reply?.parse(JSON.parse(data)) as z.output<Event>
    }
  }
}

/**
 * Yields everything that the agent wrote. Otherwise, a response that is cut off would discard data that nobody has read
 * yet.
 */
function readToEnd(response: IncomingMessage): Readable {
  const read = new PassThrough({ highWaterMark: maxWaitingBytes, encoding: 'utf8' })
  response.on('data', (chunk: Buffer) => read.write(chunk) || response.pause())
  read.on('drain', () => response.resume())
  response.on('error', () => {}) // 'end' follows.
  response.once('close', () => read.end())
  read.once('close', () => response.destroy())
  return read
}
