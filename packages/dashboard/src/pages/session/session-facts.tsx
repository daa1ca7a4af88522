import type { Browser } from '@berth/contract/browsers/browser.ts'
import type { ReactNode } from 'react'
import { CopyButton } from '../../components/copy-button.tsx'
import { durationText, timeText } from '../../components/format.tsx'
import { words } from '../../strings/session.ts'

/** Properties of a session, below its screen. */
export function SessionFacts({ session }: { readonly session: Browser }) {
  const { session_id: id, created_at, viewport, timeout_seconds, profile, pool, proxy, start_url, tags } = session
  const facts: readonly (readonly [title: string, value: ReactNode])[] = [
    [
      words.id,
      <>
        <code>{id}</code> <CopyButton text={id} />
      </>,
    ],
    [words.created, timeText(created_at)],
    [words.timeout, durationText(timeout_seconds * 1000)],
    [words.viewport, `${viewport.width} × ${viewport.height}`],
    [words.profile, profile && (profile.name ?? profile.id)],
    [words.pool, pool && (pool.name ?? pool.id)],
    [words.proxy, proxy.id ?? proxy.mode],
    [words.startUrl, start_url],
    [
      words.tags,
      tags &&
        Object.entries(tags).map(([key, value]) => (
          <code key={key}>
            {key}={value}{' '}
          </code>
        )),
    ],
  ]
  return (
    <dl className="details">
      {facts.map(
        ([title, value]) =>
          value && (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  )
}
