import { type Browser, BrowserRequest } from '@berth/contract/browsers/browser.ts'
import { createBrowser, updateBrowser } from '@berth/contract/browsers/browser-endpoints.ts'
import { BrowserUpdateRequest } from '@berth/contract/browsers/browser-update.ts'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { call } from '../../api/client.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { common } from '../../strings/common.ts'
import { words } from '../../strings/sessions.ts'
import { createSnippets } from './snippets.ts'

export function NewSession({ onClose }: { readonly onClose: () => void }) {
  const navigate = useNavigate()
  return (
    <FormDialog
      title={words.create}
      schema={BrowserRequest}
      initial={{ timeout_seconds: 600 }}
      submitLabel={common.create}
      busyLabel={words.creating}
      send={(body: BrowserRequest) => call(createBrowser, { body })}
      onDone={({ session_id: id }) => navigate({ to: '/sessions/$id', params: { id } })}
      onClose={onClose}
      preview={(request) => <Snippet request={request as object} />}
    />
  )
}

export function EditSession({ session, onClose }: { readonly session: Browser; readonly onClose: () => void }) {
  const queries = useQueryClient()
  const { session_id: id, name, tags, viewport } = session
  const initial = { name, tags, viewport }
  return (
    <FormDialog
      title={words.edit}
      schema={BrowserUpdateRequest}
      initial={initial}
      submitLabel={common.save}
      send={(value: Record<string, unknown>) =>
        call(updateBrowser, { params: { id_or_name: id }, body: changesOf(initial, value) as BrowserUpdateRequest })
      }
      onDone={() => {
        onClose()
        return queries.invalidateQueries({ queryKey: ['session', id] })
      }}
      onClose={onClose}
    />
  )
}

/** The same call with the SDK, in the chosen language. */
function Snippet({ request }: { readonly request: object }) {
  const [language, setLanguage] = useState<keyof typeof createSnippets>('TypeScript')
  const text = createSnippets[language](request, location.origin)
  return (
    <section className="snippet" aria-label={words.snippet}>
      <header className="snippet-head">
        <h3>{words.snippet}</h3>
        <select
          className="snippet-language"
          aria-label={words.language}
          value={language}
          onChange={({ target }) => setLanguage(target.value as keyof typeof createSnippets)}
        >
          {Object.keys(createSnippets).map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
        <CopyButton text={text} />
      </header>
      <pre tabIndex={0}>{text}</pre>
    </section>
  )
}

/** Sends only changed fields: an unchanged viewport would be refused while somebody watches. */
function changesOf(before: Record<string, unknown>, value: Record<string, unknown>): Record<string, unknown> {
  const isSame = (key: string) => JSON.stringify(before[key]) === JSON.stringify(value[key])
  return Object.fromEntries(Object.entries(value).filter(([key]) => !isSame(key)))
}
