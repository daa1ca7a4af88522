import { type Browser, BrowserRequest } from '@berth/contract/browsers/browser.ts'
import { createBrowser, updateBrowser } from '@berth/contract/browsers/browser-endpoints.ts'
import { BrowserUpdateRequest } from '@berth/contract/browsers/browser-update.ts'
import { useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { call } from '../../api/client.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { common } from '../../components/strings.ts'
import { words } from './strings.ts'

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
      preview={(value) => <Snippet text={snippetOf(value)} />}
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

function Snippet({ text }: { readonly text: string }) {
  return (
    <section className="snippet" aria-label={words.snippet}>
      <header>
        <h3>{words.snippet}</h3>
        <CopyButton text={text} />
      </header>
      <pre tabIndex={0}>{text}</pre>
    </section>
  )
}

function snippetOf(value: unknown): string {
  const request = JSON.stringify(value, undefined, 2)
    .replaceAll(/"(\w+)":/g, '$1:')
    .replaceAll('"', "'")
  return `import Kernel from '@onkernel/sdk'

const client = new Kernel({ baseURL: '${location.origin}', apiKey: process.env.KERNEL_API_KEY })
const session = await client.browsers.create(${request})`
}

/** Only what is other than before: an unchanged viewport would be refused while somebody watches. */
function changesOf(before: Record<string, unknown>, value: Record<string, unknown>): Record<string, unknown> {
  const isSame = (key: string) => JSON.stringify(before[key]) === JSON.stringify(value[key])
  return Object.fromEntries(Object.entries(value).filter(([key]) => !isSame(key)))
}
