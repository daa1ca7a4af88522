import type { Overview } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import { Badge } from '../../components/feedback.tsx'
import { words } from '../../strings/overview.ts'

type Finding = NonNullable<Overview['findings']>[number]

const tones = { ok: 'good', warning: 'warn', failure: 'bad' } as const
const order: readonly Finding['state'][] = ['failure', 'warning', 'ok']

/** The doctor's findings: problems first, passed checks collapsed. */
export function Findings({ findings }: { readonly findings: readonly Finding[] }) {
  const sorted = findings.toSorted((one, other) => order.indexOf(one.state) - order.indexOf(other.state))
  const faults = sorted.filter(({ state }) => state !== 'ok')
  const well = sorted.filter(({ state }) => state === 'ok')
  return (
    <section className="card findings" aria-label={words.findings}>
      <h2>{words.findings}</h2>
      {faults.length === 0 && <p className="quiet">{words.allWell(findings.length)}</p>}
      {faults.length > 0 && <FindingList findings={faults} />}
      <details>
        <summary>{faults.length === 0 ? words.show : words.wellCount(well.length)}</summary>
        <FindingList findings={well} />
      </details>
    </section>
  )
}

function FindingList({ findings }: { readonly findings: readonly Finding[] }) {
  return (
    <ul>
      {findings.map(({ name, state, fact, cure }) => (
        <li key={name}>
          <Badge tone={tones[state]}>{state}</Badge> <span className="strong">{name}</span>
          <p>{fact}</p>
          {cure && <p className="quiet">{words.cure(cure)}</p>}
        </li>
      ))}
    </ul>
  )
}
