import type { EventCategory } from '@berth/contract/telemetry/event-types.ts'
import { categoriesOfEvents, type TelemetryEnvelope } from '@berth/contract/telemetry/telemetry-event.ts'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { words } from '../../../strings/session.ts'
import { EventList } from '../event-list.tsx'
import { millisecondsOf } from '../event-text.ts'
import { seekTo, useReplays } from '../replay-list.ts'
import type { TabProps } from './tab-props.ts'

const stripWidth = 600
/** More ticks than pixels show nothing. */
const maxTicks = 1_200

export function TimelineTab({ session, telemetry }: TabProps) {
  const navigate = useNavigate()
  const [hidden, setHidden] = useState<ReadonlySet<EventCategory>>(new Set())
  const [zoom, setZoom] = useState<Range>()
  const [current, setCurrent] = useState<number>()
  const { session_id: id } = session
  const replays = useReplays(id)
  const present = categoriesOfEvents.filter((each) => telemetry.events.some(({ event }) => event.category === each))
  const wanted = telemetry.events.filter(({ event }) => !hidden.has(event.category))
  const whole = rangeOf(telemetry.events)
  const range = zoom ?? whole
  const shown = wanted.filter(({ event }) => isWithin(range, millisecondsOf(event)))
  const middle = shown.find(({ seq }) => seq === current)?.event
  const scale = (factor: number) => setZoom(scaled(range, factor, middle ? millisecondsOf(middle) : undefined))
  const seekable = (event: TelemetryEnvelope) => replays.data && seekTo(replays.data, millisecondsOf(event.event))
  return (
    <>
      <div className="chips" role="group" aria-label={words.categories}>
        {present.map((category) => (
          <label key={category} className={`chip ${category}`}>
            <input
              type="checkbox"
              checked={!hidden.has(category)}
              onChange={() => setHidden(toggled(hidden, category))}
            />
            {category}
          </label>
        ))}
        <span className="spread" />
        <button type="button" className="small" aria-label={words.zoomIn} onClick={() => scale(0.5)}>
          +
        </button>
        <button type="button" className="small" aria-label={words.zoomOut} disabled={!zoom} onClick={() => scale(2)}>
          −
        </button>
        <button type="button" className="small" disabled={!zoom} onClick={() => setZoom(undefined)}>
          {words.zoomReset}
        </button>
      </div>
      <Strip events={shown} range={range} onPick={setCurrent} />
      <EventList
        events={shown}
        label={words.tabs.timeline}
        current={current}
        onPick={({ seq }) => setCurrent(seq)}
        actionOf={(event) =>
          seekable(event) && (
            <button
              type="button"
              className="small"
              onClick={() =>
                void navigate({
                  to: '/sessions/$id',
                  params: { id },
                  search: { tab: 'replays', at: millisecondsOf(event.event) },
                })
              }
            >
              {words.seek}
            </button>
          )
        }
      />
    </>
  )
}

interface StripProps {
  readonly events: readonly TelemetryEnvelope[]
  readonly range: Range
  readonly onPick: (seq: number) => void
}

/** One tick per event. The list below contains the same as text. */
function Strip({ events, range, onPick }: StripProps) {
  const step = Math.max(1, Math.ceil(events.length / maxTicks))
  const ticks = events.filter((_, index) => index % step === 0)
  const xOf = (at: number) => ((at - range.from) / Math.max(1, range.to - range.from)) * stripWidth
  return (
    <svg
      className="strip"
      viewBox={`0 0 ${stripWidth} 40`}
      preserveAspectRatio="none"
      role="img"
      aria-label={words.strip}
    >
      {ticks.map(({ seq, event }) => (
        // biome-ignore lint/a11y/noStaticElementInteractions: the list offers the same to the keyboard.
        <rect
          key={seq}
          className={event.category}
          x={xOf(millisecondsOf(event))}
          y={4}
          width={2}
          height={32}
          onClick={() => onPick(seq)}
        />
      ))}
    </svg>
  )
}

interface Range {
  readonly from: number
  readonly to: number
}

function rangeOf(events: readonly TelemetryEnvelope[]): Range {
  const [first, last] = [events[0], events.at(-1)]
  return first && last ? { from: millisecondsOf(first.event), to: millisecondsOf(last.event) } : { from: 0, to: 0 }
}

function isWithin({ from, to }: Range, at: number): boolean {
  return at >= from && at <= to
}

function scaled({ from, to }: Range, factor: number, middle = (from + to) / 2): Range {
  const half = Math.max(500, ((to - from) * factor) / 2)
  return { from: middle - half, to: middle + half }
}

function toggled<Item>(items: ReadonlySet<Item>, item: Item): ReadonlySet<Item> {
  const next = new Set(items)
  if (!next.delete(item)) next.add(item)
  return next
}
