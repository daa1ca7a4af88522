import type { ReactNode } from 'react'
import { common } from '../strings/common.ts'

interface PendingProps {
  readonly query: { readonly data: unknown; readonly error: Error | null; refetch(): unknown }
}

/** Shown while a page has no data, and beside its data if loading more has failed. */
export function Pending({ query }: PendingProps) {
  if (query.data !== undefined && !query.error) return null
  if (!query.error)
    return (
      <p className="quiet" role="status">
        {common.loading}
      </p>
    )
  return (
    <div className="notice bad" role="alert">
      <p>
        {common.failed} {query.error.message}
      </p>
      <button type="button" onClick={() => void query.refetch()}>
        {common.retry}
      </button>
    </div>
  )
}

interface EmptyProps {
  readonly title: string
  /** A page that explains more. */
  readonly guide?: string | undefined
  readonly children?: ReactNode
}

export function Empty({ title, guide, children }: EmptyProps) {
  return (
    <div className="empty">
      <svg aria-hidden="true" viewBox="0 0 48 32" width="48" height="32">
        <rect x="1" y="1" width="46" height="30" rx="4" />
        <path d="M1 9h46M6 5h1M10 5h1M14 5h1" />
      </svg>
      <p className="strong">{title}</p>
      {children}
      {guide && <a href={`/docs/guides/${guide}`}>{common.guide}</a>}
    </div>
  )
}

export function Failure({ error }: { readonly error: Error | null }) {
  return error ? (
    <p className="notice bad" role="alert">
      {error.message}
    </p>
  ) : null
}

export function Badge({ tone = 'plain', children }: { readonly tone?: string; readonly children: ReactNode }) {
  return <span className={`badge ${tone}`}>{children}</span>
}
