import type { Browser } from '@berth/contract/browsers/browser.ts'
import { listTelemetryEvents, streamTelemetry } from '@berth/contract/telemetry/telemetry-endpoints.ts'
import type { TelemetryEnvelope } from '@berth/contract/telemetry/telemetry-event.ts'
import { useEffect, useState } from 'react'
import { callPage, follow } from '../../api/client.ts'
import { keepFollowing } from '../../api/keep-following.ts'

/** Older ones are dropped, so that a session that runs for days does not fill the page's memory. */
const maxEvents = 5_000
const maxPages = 100
const gatherMilliseconds = 200

export interface Telemetry {
  readonly events: readonly TelemetryEnvelope[]
  readonly isLoading: boolean
}

/** The events of a session: live while it runs, and the stored ones after its end. */
export function useTelemetry({ session_id: id, created_at, deleted_at }: Browser): Telemetry {
  const [telemetry, setTelemetry] = useState<Telemetry>({ events: [], isLoading: true })
  const hasEnded = deleted_at !== undefined
  useEffect(() => {
    const leaving = new AbortController()
    let events: TelemetryEnvelope[] = []
    let timer: ReturnType<typeof setTimeout> | undefined
    const show = (isLoading: boolean) => {
      clearTimeout(timer)
      timer = undefined
      if (!leaving.signal.aborted) setTelemetry({ events: [...events], isLoading })
    }
    const read = async (source: AsyncIterable<TelemetryEnvelope>) => {
      const last = events.at(-1)?.seq ?? -1
      for await (const event of source) {
        if (event.seq <= last) continue
        if (events.length >= maxEvents) events = events.slice(maxEvents / 10)
        events.push(event)
        timer ??= setTimeout(() => show(false), gatherMilliseconds)
      }
      show(false)
    }
    const readRunning = (signal: AbortSignal) =>
      read(follow(streamTelemetry, { params: { id_or_name: id }, query: { replay: 'all' }, signal }))
    setTelemetry({ events: [], isLoading: true })
    if (hasEnded) {
      // The page is closing, or nothing was stored.
      read(readStored(id, created_at, leaving.signal)).catch(() => show(false))
    } else void keepFollowing(leaving.signal, readRunning)
    // Do not wait longer for a stream without events.
    timer = setTimeout(() => show(false), gatherMilliseconds)
    return () => {
      clearTimeout(timer)
      leaving.abort()
    }
  }, [id, created_at, hasEnded])
  return telemetry
}

async function* readStored(id: string, since: string, signal: AbortSignal): AsyncGenerator<TelemetryEnvelope> {
  let offset: number | undefined
  for (let page = 0; page < maxPages; page++) {
    const query = { limit: '100', ...(offset === undefined ? { since } : { offset: String(offset) }) }
    const { items, nextOffset } = await callPage(listTelemetryEvents, { params: { id_or_name: id }, query, signal })
    yield* items as readonly TelemetryEnvelope[]
    if (nextOffset === undefined) return
    offset = nextOffset
  }
}
