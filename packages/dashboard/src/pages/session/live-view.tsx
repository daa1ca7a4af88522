import { getLiveView } from '@berth/contract/browsers/live-view-endpoints.ts'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { Pending } from '../../components/feedback.tsx'
import { words } from '../../strings/session.ts'

interface LiveViewProps {
  readonly id: string
  readonly title: string
  readonly viewport: { readonly width: number; readonly height: number }
}

export function LiveView({ id, title, viewport: { width, height } }: LiveViewProps) {
  const [isReadOnly, setReadOnly] = useState(false)
  const view = useQuery({
    queryKey: ['live-view', id],
    queryFn: () => call(getLiveView, { params: { id_or_name: id } }),
    staleTime: Number.POSITIVE_INFINITY,
  })
  if (!view.data) return <Pending query={view} />
  return (
    <>
      <iframe
        key={String(isReadOnly)}
        title={title}
        style={{ aspectRatio: `${width} / ${height}` }}
        src={onThisOrigin(isReadOnly ? view.data.read_only_url : view.data.url)}
        allow="clipboard-read; clipboard-write"
      />
      <label className="inline">
        <input type="checkbox" checked={isReadOnly} onChange={({ target }) => setReadOnly(target.checked)} />
        {words.readOnly}
      </label>
    </>
  )
}

/** Uses the origin of this page, because berth may give clients another address. */
export function onThisOrigin(url: string): string {
  const { pathname, search } = new URL(url)
  return pathname + search
}
