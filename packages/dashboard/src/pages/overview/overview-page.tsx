import { getOverview, type Overview } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import { getOrgLimits, type OrgLimits } from '@berth/contract/organizations/organization-endpoints.ts'
import { getHealth } from '@berth/contract/service/service-endpoints.ts'
import { useQuery } from '@tanstack/react-query'
import { call } from '../../api/client.ts'
import { Badge, Pending } from '../../components/feedback.tsx'
import { bytesText, durationText } from '../../components/format.tsx'
import { common } from '../../components/strings.ts'
import { Chart } from './chart.tsx'

const words = {
  title: 'Overview',
  state: 'State',
  running: 'Sessions now',
  limit: (used: number, limit: number) => `${used} of ${limit}`,
  started: 'Started today',
  time: 'Browser time today',
  room: 'Room for sessions on this host',
  memory: 'Free memory',
  vaults: 'Vaults',
  startedByHour: 'Sessions started, by hour',
  sessionsByHour: 'Sessions, by hour',
}

export function OverviewPage() {
  const overview = useQuery({ queryKey: ['sessions', 'overview'], queryFn: () => call(getOverview) })
  const limits = useQuery({ queryKey: ['sessions', 'limits'], queryFn: () => call(getOrgLimits) })
  const health = useQuery({ queryKey: ['health'], queryFn: () => call(getHealth) })
  return (
    <>
      <header className="page">
        <h1>{words.title}</h1>
      </header>
      {!(overview.data && limits.data) && <Pending query={overview.error ? overview : limits} />}
      {overview.data && limits.data && (
        <>
          <dl className="facts">
            <Fact title={words.state}>
              {health.data ? (
                <Badge tone={health.data.status === 'ok' ? 'good' : 'bad'}>{health.data.status}</Badge>
              ) : (
                common.none
              )}
            </Fact>
            {factsOf(overview.data, limits.data).map(([title, text]) => (
              <Fact key={title} title={title}>
                {text}
              </Fact>
            ))}
          </dl>
          <Chart
            title={words.startedByHour}
            points={overview.data.hours.map(({ at, started }) => ({ at, count: started }))}
          />
          <Chart
            title={words.sessionsByHour}
            points={overview.data.hours.map(({ at, sessions }) => ({ at, count: sessions }))}
          />
        </>
      )}
    </>
  )
}

function Fact({ title, children }: { readonly title: string; readonly children: React.ReactNode }) {
  return (
    <div className="card">
      <dt>{title}</dt>
      <dd>{children}</dd>
    </div>
  )
}

function factsOf({ hours, room }: Overview, limits: OrgLimits): readonly (readonly [string, string])[] {
  const sum = (of: (hour: Overview['hours'][number]) => number) => hours.reduce((total, hour) => total + of(hour), 0)
  const { concurrent_sessions_used: used, max_concurrent_sessions: limit, vaults_used } = limits
  return [
    [words.running, words.limit(used ?? 0, limit)],
    [words.started, String(sum(({ started }) => started))],
    [words.time, durationText(sum(({ browser_seconds }) => browser_seconds) * 1000)],
    [words.vaults, String(vaults_used)],
    ...(room
      ? ([
          [words.room, room.sessions === null ? common.none : String(room.sessions)],
          [words.memory, room.memory_bytes === null ? common.none : bytesText(room.memory_bytes)],
        ] as const)
      : []),
  ]
}
