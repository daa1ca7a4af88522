import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { eventStreamType } from '@berth/contract/stream.ts'

/**
 * Headers of a stream of server-sent events. They keep proxies from compressing, caching or buffering it, which would
 * delay events.
 */
export const eventStreamHeaders = {
  'content-type': eventStreamType,
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
  'x-sse-content-type': 'application/json',
} as const

const defaultKeepAliveMilliseconds = 15_000
/** One newline: an empty line would be an event without data, on which some clients break. */
const keepAliveText = ': keepalive\n'
const dataPrefix = 'data: '

export interface EventStreamOptions {
  readonly keepAliveMilliseconds?: number
  /** The id of an event, with which a reader resumes. */
  readonly idOf?: (event: object) => number
  /** The type of an event, for readers that expect it outside of the data. */
  readonly nameOf?: (event: { readonly event?: string }) => string | undefined
}

/**
 * Formats events as text. An array is several events, each already JSON. Requests one event at a time, and the next
 * only when the reader has taken the last: a slow reader holds back at most one event here. The source has to report
 * what is lost meanwhile.
 */
export function toEventStream(events: AsyncIterable<object>, options: EventStreamOptions = {}): Readable {
  return toReadable(toText(events, options), options)
}

function toReadable(events: AsyncGenerator<string>, options: EventStreamOptions): Readable {
  return Readable.from(textOf(events, options), { objectMode: false, highWaterMark: 1 })
}

async function* toText(events: AsyncIterable<object>, { idOf, nameOf }: EventStreamOptions): AsyncGenerator<string> {
  for await (const event of events) {
    if (Array.isArray(event)) {
      yield event.map((json: string) => `${dataPrefix}${json}\n\n`).join('')
      continue
    }
    const id = idOf ? `id: ${idOf(event)}\n` : ''
    const name = nameOf?.(event)
    yield `${id}${name === undefined ? '' : `event: ${name}\n`}${dataPrefix}${JSON.stringify(event)}\n\n`
  }
}

async function* textOf(
  source: AsyncGenerator<string>,
  { keepAliveMilliseconds = defaultKeepAliveMilliseconds }: EventStreamOptions,
): AsyncGenerator<string> {
  try {
    for (let next = new NextEvent(source); ; ) {
      if (!(await next.comesWithin(keepAliveMilliseconds))) yield keepAliveText
      else {
        const { done, value } = await next.result
        if (done) return
        yield value
        next = new NextEvent(source)
      }
    }
  } finally {
    source.return(undefined).catch(() => {}) // Not awaited: a source that ignores its signal might never end.
  }
}

/** One request to the source. Waiting for its result repeatedly adds no handlers. */
class NextEvent {
  readonly result: Promise<IteratorResult<string>>
  #hasSettled = false
  #wake: () => void = () => {}

  constructor(source: AsyncIterator<string>) {
    this.result = source.next()
    const settle = () => {
      this.#hasSettled = true
      this.#wake()
    }
    this.result.then(settle, settle)
  }

  async comesWithin(milliseconds: number): Promise<boolean> {
    if (!this.#hasSettled) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      const timer = setTimeout(resolve, milliseconds)
      await promise
      clearTimeout(timer)
    }
    return this.#hasSettled
  }
}

/**
 * Sends the events until they end or the reader disconnects. When the source fails, the response is cut off, so that
 * nobody takes it for complete, and the promise rejects.
 */
export async function sendEvents(
  response: ServerResponse,
  events: AsyncIterable<object>,
  options: EventStreamOptions = {},
): Promise<void> {
  response.writeHead(200, eventStreamHeaders).flushHeaders()
  let failure: unknown
  const heard = hearFailure(toText(events, options), (error) => {
    failure = error
  })
  await pipeline(toReadable(heard, options), response).catch(() => response.destroy())
  if (failure !== undefined) throw failure
}

async function* hearFailure(events: AsyncGenerator<string>, hear: (error: unknown) => void): AsyncGenerator<string> {
  try {
    yield* events
  } catch (error) {
    hear(error)
    throw error
  }
}

/** The data of one line of a stream that `toEventStream` wrote, if the line has any. */
export function eventDataOf(line: string): string | undefined {
  return line.startsWith(dataPrefix) ? line.slice(dataPrefix.length) : undefined
}
