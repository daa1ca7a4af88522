import { useEffect, useState } from 'react'
import { follow } from '../../api/client.ts'
import { Dialog } from '../../components/dialog.tsx'
import { words } from '../../strings/resources.ts'
import { type Item, paramsOf, type Resource } from './resource.ts'

const maxLines = 1_000

interface ItemLogProps {
  readonly resource: Resource
  readonly item: Item
  readonly onClose: () => void
}

export function ItemLog({ resource: { log, keyOf, nameOf }, item, onClose }: ItemLogProps) {
  const [lines, setLines] = useState<readonly string[]>([])
  const id = keyOf(item)
  useEffect(() => {
    const leaving = new AbortController()
    const read = async () => {
      if (!log) return
      for await (const event of follow(log, { params: paramsOf(id), signal: leaving.signal })) {
        const { message } = event as { readonly message?: string }
        if (message !== undefined) setLines((before) => [...before.slice(1 - maxLines), message.trimEnd()])
      }
    }
    setLines([])
    read().catch(({ message }: Error) => {
      if (!leaving.signal.aborted) setLines([message])
    })
    return () => leaving.abort()
  }, [log, id])
  return (
    <Dialog title={nameOf(item)} onClose={onClose} isWide>
      <pre className="log" tabIndex={0} role="log" aria-label={words.log}>
        {lines.join('\n') || words.noLines}
      </pre>
    </Dialog>
  )
}
