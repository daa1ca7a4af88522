import { ServiceName } from '@berth/contract/agent/agent-endpoints.ts'
import { type LogEvent, streamLogs } from '@berth/contract/agent/operations/logs-operations.ts'
import { useEffect, useState } from 'react'
import { follow } from '../../../api/client.ts'
import { words } from '../../../strings/session.ts'
import type { TabProps } from './tab-props.ts'

const maxLines = 1_000
const fileSource = 'file'

export function LogsTab({ session: { session_id: id } }: TabProps) {
  const [source, setSource] = useState<string>('chromium')
  const [path, setPath] = useState('/var/log/')
  const [isFollowing, setFollowing] = useState(false)
  const [lines, setLines] = useState<readonly LogEvent[]>([])
  useEffect(() => {
    const leaving = new AbortController()
    const query =
      source === fileSource
        ? { source: 'path' as const, path, follow: isFollowing }
        : { source: 'supervisor' as const, supervisor_process: source as ServiceName, follow: isFollowing }
    const read = async () => {
      setLines([])
      const stream = follow(streamLogs, { params: { id_or_name: id }, query, signal: leaving.signal })
      for await (const line of stream) setLines((before) => [...before.slice(1 - maxLines), line])
    }
    const wait = setTimeout(() => {
      read().catch(({ message }: Error) => {
        if (!leaving.signal.aborted) setLines([{ event: 'log', message, timestamp: '' }])
      })
    }, 300)
    return () => {
      clearTimeout(wait)
      leaving.abort()
    }
  }, [id, source, path, isFollowing])
  return (
    <>
      <div className="chips">
        <select aria-label={words.logSource} value={source} onChange={({ target }) => setSource(target.value)}>
          {ServiceName.options.map((name) => (
            <option key={name}>{name}</option>
          ))}
          <option value={fileSource}>{words.logPath}</option>
        </select>
        {source === fileSource && (
          <input aria-label={words.logPath} value={path} onChange={({ target }) => setPath(target.value)} />
        )}
        <label className="inline">
          <input type="checkbox" checked={isFollowing} onChange={({ target }) => setFollowing(target.checked)} />
          {words.follow}
        </label>
      </div>
      <pre className="log" tabIndex={0} role="log" aria-label={words.tabs.logs}>
        {lines.map(({ message }) => message).join('\n') || words.noLines}
      </pre>
    </>
  )
}
