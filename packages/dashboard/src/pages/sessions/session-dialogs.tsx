import { type Browser, BrowserRequest } from '@berth/contract/browsers/browser.ts'
import { createBrowser, updateBrowser } from '@berth/contract/browsers/browser-endpoints.ts'
import { BrowserUpdateRequest } from '@berth/contract/browsers/browser-update.ts'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { call } from '../../api/client.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Dialog } from '../../components/dialog.tsx'
import { SchemaForm } from '../../components/schema-form.tsx'
import { common } from '../../components/strings.ts'
import { words } from './strings.ts'

export function NewSession({ onClose }: { readonly onClose: () => void }) {
  const navigate = useNavigate()
  const create = useMutation({
    mutationFn: (body: unknown) => call(createBrowser, { body: body as BrowserRequest }),
    onSuccess: ({ session_id: id }) => navigate({ to: '/sessions/$id', params: { id } }),
  })
  return (
    <Dialog title={words.create} onClose={onClose} isWide>
      <SchemaForm
        schema={BrowserRequest}
        initial={{ timeout_seconds: 600 }}
        submitLabel={create.isPending ? words.creating : common.create}
        isBusy={create.isPending}
        error={create.error}
        onSubmit={(value) => create.mutate(value)}
        onClose={onClose}
        preview={(value) => <Snippet text={snippetOf(value)} />}
      />
    </Dialog>
  )
}

export function EditSession({ session, onClose }: { readonly session: Browser; readonly onClose: () => void }) {
  const queries = useQueryClient()
  const { session_id: id, name, tags, viewport } = session
  const update = useMutation({
    mutationFn: (body: unknown) =>
      call(updateBrowser, { params: { id_or_name: id }, body: body as BrowserUpdateRequest }),
    onSuccess: async () => {
      onClose()
      await queries.invalidateQueries({ queryKey: ['session', id] })
    },
  })
  const changed = (value: unknown) => changesOf({ name, tags, viewport }, value as Record<string, unknown>)
  return (
    <Dialog title={words.edit} onClose={onClose} isWide>
      <SchemaForm
        schema={BrowserUpdateRequest}
        initial={{ name, tags, viewport }}
        submitLabel={common.save}
        isBusy={update.isPending}
        error={update.error}
        onSubmit={(value) => update.mutate(changed(value))}
        onClose={onClose}
      />
    </Dialog>
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
  const changes = Object.fromEntries(Object.entries(value).filter(([key]) => !isSame(key)))
  if (before.name !== undefined && value.name === undefined) changes.name = ''
  if (before.tags !== undefined && value.tags === undefined) changes.tags = {}
  return changes
}
