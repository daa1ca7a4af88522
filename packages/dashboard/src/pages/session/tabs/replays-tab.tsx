import type { BrowserReplay } from '@berth/contract/replays/replay.ts'
import { startReplay, stopReplay } from '@berth/contract/replays/replay-endpoints.ts'
import { useMutation } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { call } from '../../../api/client.ts'
import { Failure, Pending } from '../../../components/feedback.tsx'
import { timeText } from '../../../components/format.tsx'
import { words } from '../../../strings/session.ts'
import { EventList } from '../event-list.tsx'
import { millisecondsOf } from '../event-text.ts'
import { seekTo, useReplays, videoUrl } from '../replay-list.ts'
import type { Telemetry } from '../use-telemetry.ts'
import type { TabProps } from './tab-props.ts'

const route = getRouteApi('/shell/sessions/$id')

export function ReplaysTab({ session, telemetry }: TabProps) {
  const { session_id: id, deleted_at } = session
  const { at } = route.useSearch()
  const replays = useReplays(id)
  const [chosen, setChosen] = useState<string>()
  const refresh = () => replays.refetch()
  const start = useMutation({
    mutationFn: () => call(startReplay, { params: { id_or_name: id }, body: {} }),
    onSuccess: refresh,
  })
  const stop = useMutation({
    mutationFn: (replay: string) => call(stopReplay, { params: { id_or_name: id, replay_id: replay } }),
    onSuccess: refresh,
  })
  if (!replays.data) return <Pending query={replays} />
  const finished = replays.data.filter(({ finished_at }) => finished_at !== null)
  const running = replays.data.filter(({ finished_at }) => finished_at === null)
  const sought = at === undefined ? undefined : seekTo(finished, at)
  const shown = finished.find(({ replay_id }) => replay_id === chosen) ?? sought ?? finished.at(-1)
  return (
    <>
      <div className="chips">
        {finished.length > 0 && (
          <select
            aria-label={words.pickReplay}
            value={shown?.replay_id}
            onChange={({ target }) => setChosen(target.value)}
          >
            {finished.map(({ replay_id, started_at }) => (
              <option key={replay_id} value={replay_id}>
                {started_at ? timeText(started_at) : replay_id}
              </option>
            ))}
          </select>
        )}
        <span className="spread" />
        {running.map(({ replay_id }) => (
          <button key={replay_id} type="button" disabled={stop.isPending} onClick={() => stop.mutate(replay_id)}>
            {words.stop}
          </button>
        ))}
        {!deleted_at && running.length === 0 && (
          <button type="button" disabled={start.isPending} onClick={() => start.mutate()}>
            {words.record}
          </button>
        )}
      </div>
      {running.length > 0 && <p role="status">{words.recording}</p>}
      <Failure error={start.error ?? stop.error} />
      {shown ? (
        <Player key={shown.replay_id} replay={shown} telemetry={telemetry} at={shown === sought ? at : undefined} />
      ) : (
        running.length === 0 && <p className="quiet">{words.noReplays}</p>
      )}
    </>
  )
}

interface PlayerProps {
  readonly replay: BrowserReplay
  readonly telemetry: Telemetry
  /** The time to start at. */
  readonly at: number | undefined
}

/** The recording beside its events: selecting in one moves the other. */
function Player({ replay, telemetry, at }: PlayerProps) {
  const video = useRef<HTMLVideoElement>(null)
  const [moment, setMoment] = useState(0)
  const start = new Date(replay.started_at ?? 0).getTime()
  const end = new Date(replay.finished_at ?? 0).getTime()
  const events = telemetry.events.filter(({ event }) => {
    const when = millisecondsOf(event)
    return when >= start && when <= end
  })
  const current = events.findLast(({ event }) => millisecondsOf(event) - start <= moment * 1000)
  const seek = (when: number) => {
    if (video.current) video.current.currentTime = Math.max(0, (when - start) / 1000)
  }
  useEffect(() => {
    if (at !== undefined && video.current) video.current.currentTime = Math.max(0, (at - start) / 1000)
  }, [at, start])
  return (
    <>
      {/* biome-ignore lint/a11y/useMediaCaption: recordings have no sound. */}
      <video
        ref={video}
        controls
        preload="metadata"
        src={videoUrl(replay)}
        onTimeUpdate={({ currentTarget }) => setMoment(currentTarget.currentTime)}
      />
      <EventList
        events={events}
        label={words.eventsBeside}
        current={current?.seq}
        onPick={({ event }) => seek(millisecondsOf(event))}
      />
    </>
  )
}
