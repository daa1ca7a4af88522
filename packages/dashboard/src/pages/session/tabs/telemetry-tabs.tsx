import type { Browser } from '@berth/contract/browsers/browser.ts'
import { updateBrowser } from '@berth/contract/browsers/browser-endpoints.ts'
import type { TelemetryEnvelope } from '@berth/contract/telemetry/telemetry-event.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { call } from '../../../api/client.ts'
import { Failure } from '../../../components/feedback.tsx'
import { words } from '../../../strings/session.ts'
import { EventList } from '../event-list.tsx'
import { clockText, millisecondsOf } from '../event-text.ts'
import type { TabProps } from './tab-props.ts'

const maxRequests = 500
const maxPictures = 40

export function ConsoleTab({ session, telemetry }: TabProps) {
  const events = telemetry.events.filter(({ event }) => event.category === 'console')
  return (
    <>
      <Capture session={session} category="console" />
      <EventList events={events} label={words.tabs.console} />
    </>
  )
}

export function NetworkTab({ session, telemetry }: TabProps) {
  const requests = requestsIn(telemetry.events).slice(-maxRequests)
  const from = Math.min(...requests.map(({ start }) => start))
  const span = Math.max(1, ...requests.map(({ start, end = start }) => end - from))
  const percent = (milliseconds: number) => `${(milliseconds / span) * 100}%`
  return (
    <>
      <Capture session={session} category="network" />
      {requests.length === 0 && <p className="quiet">{words.noEvents}</p>}
      {requests.length > 0 && (
        <div className="table-frame" tabIndex={0} role="region" aria-label={words.tabs.network}>
          <table className="waterfall">
            <thead>
              <tr>
                <th>{words.request}</th>
                <th>{words.status}</th>
                <th>{words.time}</th>
              </tr>
            </thead>
            <tbody>
              {requests.map(({ id, method, url, status, hasFailed, start, end = start }) => (
                <tr key={id}>
                  <td title={url}>
                    {method} {shortUrl(url)}
                  </td>
                  <td className={hasFailed ? 'fault' : ''}>{status}</td>
                  <td>
                    <span className="track">
                      <span className="bar" style={{ left: percent(start - from), width: percent(end - start) }} />
                    </span>
                    <span className="quiet">{words.milliseconds(end - start)}</span>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}

export function ScreenshotsTab({ session, telemetry }: TabProps) {
  const pictures = telemetry.events.filter(({ event }) => event.type === 'monitor_screenshot').slice(-maxPictures)
  return (
    <>
      <Capture session={session} category="screenshot" />
      {pictures.length === 0 && <p className="quiet">{words.noEvents}</p>}
      <div className="pictures">
        {pictures.map(({ seq, event }) => (
          <figure key={seq}>
            <img src={`data:image/png;base64,${String(event.data?.png)}`} alt={clockText(event)} />
            <figcaption>{clockText(event)}</figcaption>
          </figure>
        ))}
      </div>
    </>
  )
}

type Category = 'console' | 'network' | 'screenshot'

/** Enables the capture of a category. */
function Capture({ session, category }: { readonly session: Browser; readonly category: Category }) {
  const queries = useQueryClient()
  const { session_id: id, telemetry, deleted_at } = session
  const start = useMutation({
    mutationFn: () =>
      call(updateBrowser, {
        params: { id_or_name: id },
        body: { telemetry: { browser: { ...telemetry?.browser, [category]: { enabled: true } } } },
      }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['session', id] }),
  })
  if (deleted_at || telemetry?.browser[category]?.enabled) return null
  return (
    <div className="notice">
      {words.notCaptured(category)}{' '}
      <button type="button" className="small" disabled={start.isPending} onClick={() => start.mutate()}>
        {words.capture(category)}
      </button>
      <Failure error={start.error} />
    </div>
  )
}

interface NetworkRequest {
  readonly id: string
  readonly method: string
  readonly url: string
  readonly start: number
  status: string
  hasFailed: boolean
  end?: number
}

/** Requests with their responses. A redirect responds to one request and starts the next with the same id. */
function requestsIn(events: readonly TelemetryEnvelope[]): readonly NetworkRequest[] {
  const all: NetworkRequest[] = []
  const open = new Map<string, NetworkRequest>()
  for (const { seq, event } of events) {
    const data = event.data ?? {}
    const id = String(data.request_id)
    const at = millisecondsOf(event)
    if (event.type === 'network_request') {
      const [method, url] = [String(data.method), String(data.url)]
      const request = { id: `${id}-${seq}`, method, url, start: at, status: '…', hasFailed: false }
      all.push(request)
      open.set(id, request)
    }
    const request = open.get(id)
    if (!request) continue
    if (event.type === 'network_response') {
      Object.assign(request, { status: String(data.status), hasFailed: Number(data.status) >= 400, end: at })
    }
    if (event.type === 'network_loading_failed') {
      Object.assign(request, { status: String(data.error_text), hasFailed: true, end: at })
    }
  }
  return all
}

function shortUrl(text: string): string {
  const url = URL.parse(text)
  return url ? `${url.host}${url.pathname}` : text
}
