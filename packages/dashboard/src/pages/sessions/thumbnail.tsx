import type { Browser } from '@berth/contract/browsers/browser.ts'
import { getThumbnail } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { callFile } from '../../api/client.ts'
import { words } from '../../strings/sessions.ts'

/** Rows that are scrolled past load no picture. */
const restMilliseconds = 200
/** For a row that stays visible. This is the only polling of the page, because a screen does not report changes. */
const refreshMilliseconds = 15_000

/** The screen of a session, loaded when its row stays visible. */
export function Thumbnail({ session: { session_id: id, deleted_at } }: { readonly session: Browser }) {
  const [isStaying, setStaying] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setStaying(true), restMilliseconds)
    return () => clearTimeout(timer)
  }, [])
  const picture = useQuery({
    queryKey: ['thumbnail', id],
    queryFn: async ({ signal }) => {
      const jpeg = await callFile(getThumbnail, { params: { id_or_name: id }, signal })
      if (jpeg.size === 0) throw new Error(words.noPicture)
      return jpeg
    },
    enabled: isStaying && !deleted_at,
    retry: 2,
    refetchOnWindowFocus: true,
    refetchInterval: refreshMilliseconds,
    staleTime: 5_000,
  })
  const [url, setUrl] = useState<string>()
  const blob = picture.data
  useEffect(() => {
    if (!blob || deleted_at) return setUrl(undefined)
    const next = URL.createObjectURL(blob)
    setUrl(next)
    return () => URL.revokeObjectURL(next)
  }, [blob, deleted_at])
  return url ? (
    <img className="thumbnail" src={url} alt="" />
  ) : (
    <span className="thumbnail quiet">{words.noPicture}</span>
  )
}
