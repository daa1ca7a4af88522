import { readClipboard, writeClipboard } from '@berth/contract/agent/operations/computer-operations.ts'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { call } from '../../../api/client.ts'
import { Failure } from '../../../components/feedback.tsx'
import { words } from '../../../strings/session.ts'
import type { TabProps } from './tab-props.ts'

export function ClipboardTab({ session: { session_id: id } }: TabProps) {
  const [text, setText] = useState('')
  const params = { id_or_name: id }
  const read = useMutation({
    mutationFn: () => call(readClipboard, { params }),
    onSuccess: (content) => setText(content.text),
  })
  const write = useMutation({ mutationFn: () => call(writeClipboard, { params, body: { text } }) })
  return (
    <>
      <textarea
        aria-label={words.clipboardText}
        rows={8}
        value={text}
        onChange={({ target }) => setText(target.value)}
      />
      <div className="chips">
        <button type="button" disabled={read.isPending} onClick={() => read.mutate()}>
          {words.clipboardRead}
        </button>
        <button type="button" disabled={write.isPending} onClick={() => write.mutate()}>
          {words.clipboardWrite}
        </button>
      </div>
      <Failure error={read.error ?? write.error} />
    </>
  )
}
