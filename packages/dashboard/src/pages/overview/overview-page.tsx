import { getOverview, type Overview } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import { getOrgLimits, type OrgLimits } from '@berth/contract/organizations/organization-endpoints.ts'
import { getHealth } from '@berth/contract/service/service-endpoints.ts'
import { useQuery } from '@tanstack/react-query'
import { useMemo } from 'react'
import { call } from '../../api/client.ts'
import { Badge, Pending } from '../../components/feedback.tsx'
import { bytesText, durationText } from '../../components/format.tsx'
import { PageTitle } from '../../components/page-title.tsx'
import { common } from '../../strings/common.ts'
import { words } from '../../strings/overview.ts'
import { Chart } from './chart.tsx'
import { Findings } from './findings.tsx'

export function OverviewPage() {
  const overview = useQuery({ queryKey: ['sessions', 'overview'], queryFn: () => call(getOverview) })
  const limits = useQuery({ queryKey: ['sessions', 'limits'], queryFn: () => call(getOrgLimits) })
  const health = useQuery({ queryKey: ['health'], queryFn: () => call(getHealth) })
  return (
    <>
      <header className="page">
        <PageTitle>{words.title}</PageTitle>
      </header>
      <Pending query={overview.data && !overview.error ? limits : overview} />
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
          {overview.data.findings && <Findings findings={overview.data.findings} />}
          <Charts hours={overview.data.hours} />
        </>
      )}
    </>
  )
}

function Charts({ hours }: { readonly hours: Overview['hours'] }) {
  const charts = useMemo(() => {
    const column = (name: Exclude<keyof Overview['hours'][number], 'at'>) => hours.map((hour) => hour[name])
    return {
      times: hours.map(({ at }) => at),
      starts: [
        { label: words.startedLabel, colour: '--accent', values: column('started') },
        { label: words.reserveLabel, colour: '--good', values: column('reserve_hits') },
      ],
      sessions: [{ label: words.sessionsLabel, colour: '--accent', values: column('sessions') }],
      durations: [
        { label: words.median, colour: '--accent', values: column('create_p50_ms') },
        { label: words.slowest, colour: '--warn', values: column('create_p99_ms') },
      ],
      errors: [{ label: words.errorsLabel, colour: '--bad', values: column('errors') }],
    } as const
  }, [hours])
  const { times } = charts
  return (
    <div className="charts">
      <Chart title={words.startedByHour} kind="bars" times={times} series={charts.starts} />
      <Chart title={words.sessionsByHour} kind="bars" times={times} series={charts.sessions} />
      <Chart
        title={words.timesByHour}
        kind="lines"
        times={times}
        series={charts.durations}
        textOf={words.milliseconds}
      />
      <Chart title={words.errorsByHour} kind="bars" times={times} series={charts.errors} />
    </div>
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
