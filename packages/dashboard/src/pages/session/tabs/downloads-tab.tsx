import { getDownload, listDownloads } from '@berth/contract/downloads/download-endpoints.ts'
import { useMutation, useQuery } from '@tanstack/react-query'
import { call, callFile } from '../../../api/client.ts'
import { Failure, Pending } from '../../../components/feedback.tsx'
import { bytesText, timeText } from '../../../components/format.tsx'
import { saveFile } from '../../../components/save-file.ts'
import { words } from '../../../strings/session.ts'
import type { TabProps } from './tab-props.ts'

/** Downloads of pages; after the end of the session, those that were kept. */
export function DownloadsTab({ session: { session_id: id } }: TabProps) {
  const params = { id_or_name: id }
  const downloads = useQuery({
    queryKey: ['session', id, 'downloads'],
    queryFn: () => call(listDownloads, { params }),
    retry: false,
  })
  const save = useMutation({
    mutationFn: async (name: string) => saveFile(name, await callFile(getDownload, { params: { ...params, name } })),
  })
  if (!downloads.data) return <Pending query={downloads} />
  return (
    <>
      <Failure error={save.error} />
      {downloads.data.length === 0 && <p className="quiet">{words.noDownloads}</p>}
      <ul className="files">
        {downloads.data.map(({ name, size_bytes, expires_at }) => (
          <li key={name}>
            <span className="file-name">{name}</span>
            <span className="quiet">
              {bytesText(size_bytes)} {expires_at && `${words.expires} ${timeText(expires_at)}`}
            </span>
            <button type="button" className="small" onClick={() => save.mutate(name)}>
              {words.download}
            </button>
          </li>
        ))}
      </ul>
    </>
  )
}
