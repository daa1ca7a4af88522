import type { TelemetryEnvelope } from '@berth/contract/telemetry/telemetry-event.ts'
import { useVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { words } from '../../strings/session.ts'
import { clockText, eventText } from './event-text.ts'

const rowPixels = 26

interface EventListProps {
  readonly events: readonly TelemetryEnvelope[]
  readonly label: string
  /** Highlighted and scrolled into view. */
  readonly current?: number | undefined
  readonly actionOf?: (event: TelemetryEnvelope) => ReactNode
  readonly onPick?: (event: TelemetryEnvelope) => void
}

/** Events as lines; only visible ones are rendered. A line expands to show the whole event. */
export function EventList({ events, label, current, actionOf, onPick }: EventListProps) {
  const frame = useRef<HTMLDivElement>(null)
  const [open, setOpen] = useState<TelemetryEnvelope>()
  const rows = useVirtualizer({
    count: events.length,
    getScrollElement: () => frame.current,
    estimateSize: () => rowPixels,
    overscan: 10,
  })
  const at = current === undefined ? -1 : events.findIndex(({ seq }) => seq === current)
  useEffect(() => {
    if (at >= 0) rows.scrollToIndex(at, { align: 'center' })
  }, [at, rows])
  if (events.length === 0) return <p className="quiet">{words.noEvents}</p>
  return (
    <>
      <div ref={frame} className="events" role="list" aria-label={label} tabIndex={0}>
        <div className="canvas" style={{ height: rows.getTotalSize() }}>
          {rows.getVirtualItems().map(({ index, start }) => {
            const envelope = events[index] as TelemetryEnvelope
            const { seq, event } = envelope
            return (
              <div
                role="listitem"
                key={seq}
                className={`event ${event.category}`}
                aria-current={seq === current}
                style={{ transform: `translateY(${start}px)`, height: rowPixels }}
              >
                <button
                  type="button"
                  onClick={() => {
                    setOpen(open?.seq === seq ? undefined : envelope)
                    onPick?.(envelope)
                  }}
                >
                  <time>{clockText(event)}</time> {eventText(event)}
                </button>
              </div>
            )
          })}
        </div>
      </div>
      {open && (
        <div className="event-detail">
          {actionOf?.(open)}
          <pre tabIndex={0}>{JSON.stringify(shortened(open), undefined, 2)}</pre>
        </div>
      )}
    </>
  )
}

/** An image as text is useless to a reader. */
function shortened({ seq, event }: TelemetryEnvelope): object {
  const { png, ...data } = event.data ?? {}
  return { seq, ...event, data: png === undefined ? data : { ...data, png: '…' } }
}
