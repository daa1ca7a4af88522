import type { ReactNode } from 'react'
import { common } from './strings.ts'

/** What a page shows while it has no data: it is loading, or loading has failed. */
export function Pending({ query }: { readonly query: { readonly error: Error | null; refetch(): unknown } }) {
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

export function Empty({ title, children }: { readonly title: string; readonly children?: ReactNode }) {
  return (
    <div className="empty">
      <p className="strong">{title}</p>
      {children}
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
