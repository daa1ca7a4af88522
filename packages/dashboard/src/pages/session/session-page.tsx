import type { Browser } from '@berth/contract/browsers/browser.ts'
import { deleteBrowser, getBrowser } from '@berth/contract/browsers/browser-endpoints.ts'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { Tabs } from 'radix-ui'
import { type ComponentType, useState } from 'react'
import { call } from '../../api/client.ts'
import { Confirm } from '../../components/dialog.tsx'
import { Pending } from '../../components/feedback.tsx'
import { Age, timeText } from '../../components/format.tsx'
import { PageTitle } from '../../components/page-title.tsx'
import { type TabName, words } from '../../strings/session.ts'
import { EditSession } from '../sessions/session-dialogs.tsx'
import { SessionBadges } from '../sessions/session-state.tsx'
import { LiveView } from './live-view.tsx'
import { SessionFacts } from './session-facts.tsx'
import { ClipboardTab } from './tabs/clipboard-tab.tsx'
import { ConnectTab } from './tabs/connect-tab.tsx'
import { DownloadsTab } from './tabs/downloads-tab.tsx'
import { FilesTab } from './tabs/files-tab.tsx'
import { LogsTab } from './tabs/logs-tab.tsx'
import { ReplaysTab } from './tabs/replays-tab.tsx'
import type { TabProps } from './tabs/tab-props.ts'
import { ConsoleTab, NetworkTab, ScreenshotsTab } from './tabs/telemetry-tabs.tsx'
import { TerminalTab } from './tabs/terminal-tab.tsx'
import { TimelineTab } from './tabs/timeline-tab.tsx'
import { useTelemetry } from './use-telemetry.ts'

const route = getRouteApi('/shell/sessions/$id')

const running: readonly TabName[] = ['logs', 'files', 'terminal', 'clipboard', 'connect']
const tabs: Readonly<Record<TabName, ComponentType<TabProps>>> = {
  timeline: TimelineTab,
  console: ConsoleTab,
  network: NetworkTab,
  screenshots: ScreenshotsTab,
  replays: ReplaysTab,
  downloads: DownloadsTab,
  logs: LogsTab,
  files: FilesTab,
  terminal: TerminalTab,
  clipboard: ClipboardTab,
  connect: ConnectTab,
}

export function SessionPage() {
  const { id } = route.useParams()
  const session = useQuery({
    queryKey: ['session', id],
    queryFn: () => call(getBrowser, { params: { id_or_name: id }, query: { include_deleted: true } }),
  })
  if (!session.data)
    return (
      <>
        <header className="page">
          <BackLink />
          <PageTitle>{words.title}</PageTitle>
        </header>
        <Pending query={session} />
      </>
    )
  // Each session has its own component state.
  return <OneSession key={id} session={session.data} />
}

function OneSession({ session }: { readonly session: Browser }) {
  const { tab = 'timeline' } = route.useSearch()
  const navigate = route.useNavigate()
  const telemetry = useTelemetry(session)
  const { session_id: id, name, deleted_at: endedAt } = session
  const names = (Object.keys(tabs) as TabName[]).filter((each) => !endedAt || !running.includes(each))
  return (
    <>
      <SessionHeader session={session} />
      <div className="session">
        <section className="screen" aria-label={words.live}>
          {endedAt ? (
            <div className="empty">
              <p className="strong">{words.ended(timeText(endedAt))}</p>
              <p>{words.endedHint}</p>
            </div>
          ) : (
            <LiveView id={id} title={`${words.live}: ${name ?? id}`} viewport={session.viewport} />
          )}
          <SessionFacts session={session} />
        </section>
        <Tabs.Root
          className="tabs"
          value={names.includes(tab as TabName) ? tab : 'timeline'}
          onValueChange={(next) => void navigate({ search: { tab: next }, replace: true })}
        >
          <Tabs.List aria-label={words.sections} className="tab-list">
            {names.map((each) => (
              <Tabs.Trigger key={each} value={each}>
                {words.tabs[each]}
              </Tabs.Trigger>
            ))}
          </Tabs.List>
          {names.map((each) => {
            const Tab = tabs[each]
            return (
              <Tabs.Content key={each} value={each} className="tab">
                <Tab session={session} telemetry={telemetry} />
              </Tabs.Content>
            )
          })}
        </Tabs.Root>
      </div>
    </>
  )
}

function BackLink() {
  return (
    <Link to="/sessions" aria-label={words.back}>
      ←
    </Link>
  )
}

function SessionHeader({ session }: { readonly session: Browser }) {
  const [open, setOpen] = useState<'edit' | 'delete'>()
  const { session_id: id, name, created_at, deleted_at: endedAt } = session
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: () => call(deleteBrowser, { params: { id_or_name: id } }),
    onSuccess: () => {
      setOpen(undefined)
      // Another server does not report its events here.
      return queries.invalidateQueries({ queryKey: ['session', id] })
    },
  })
  return (
    <header className="page">
      <BackLink />
      <PageTitle>{name ?? id}</PageTitle>
      <SessionBadges session={session} />
      <span className="quiet">
        <Age since={created_at} />
      </span>
      <span className="spread" />
      {!endedAt && (
        <>
          <button type="button" onClick={() => setOpen('edit')}>
            {words.edit}
          </button>
          <button type="button" className="danger" onClick={() => setOpen('delete')}>
            {words.remove}
          </button>
        </>
      )}
      {open === 'edit' && <EditSession session={session} onClose={() => setOpen(undefined)} />}
      {open === 'delete' && (
        <Confirm
          question={words.removeQuestion}
          warning={words.removeWarning}
          isBusy={remove.isPending}
          error={remove.error}
          onConfirm={() => remove.mutate()}
          onClose={() => setOpen(undefined)}
        />
      )}
    </header>
  )
}
