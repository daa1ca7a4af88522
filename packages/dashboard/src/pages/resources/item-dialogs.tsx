import { useMutation, useQuery } from '@tanstack/react-query'
import { call } from '../../api/client.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Confirm, Dialog } from '../../components/dialog.tsx'
import { Pending } from '../../components/feedback.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { common } from '../../strings/common.ts'
import { values } from '../../strings/lists.ts'
import { words } from '../../strings/resources.ts'
import { ItemLog } from './item-log.tsx'
import { formDataOf, type Item, type OtherCreate, paramsOf, type Resource, type Settings } from './resource.ts'

export type OpenDialog =
  | { readonly kind: 'create' }
  | { readonly kind: 'otherCreate'; readonly otherCreate: OtherCreate }
  | { readonly kind: 'edit' | 'remove' | 'log' | 'settings'; readonly item: Item }
  | { readonly kind: 'message'; readonly text: string }

interface ItemDialogProps {
  readonly resource: Resource
  readonly open: OpenDialog
  readonly onClose: () => void
  /** Called with the text to show afterwards, if any. */
  readonly onDone: (text?: string) => void
}

/** The open dialog of a list. */
export function ItemDialog({ resource, open, onClose, onDone }: ItemDialogProps) {
  const { one, create, createdText, update, initial, settings, keyOf, nameOf } = resource
  const save = { submitLabel: common.save, onClose, onDone: () => onDone() }
  switch (open.kind) {
    case 'create':
      return create ? (
        <FormDialog
          title={words.create(one)}
          schema={create.body}
          submitLabel={common.create}
          send={(value) => call(create, { body: create.bodyType ? formDataOf(value) : value })}
          onDone={(reply) => {
            const secret = createdText?.(reply as never)
            onDone(secret && values.once(secret))
          }}
          onClose={onClose}
        />
      ) : null
    case 'otherCreate': {
      const { label, schema, make } = open.otherCreate
      return <FormDialog {...save} title={label} schema={schema} submitLabel={common.create} send={make} />
    }
    case 'edit':
      return update ? (
        <FormDialog
          {...save}
          title={words.edit(one)}
          schema={update.body}
          initial={initial?.(open.item)}
          send={(body) => call(update, { params: paramsOf(keyOf(open.item)), body })}
        />
      ) : null
    case 'settings':
      return settings ? (
        <ItemSettings {...save} settings={settings} name={nameOf(open.item)} id={keyOf(open.item)} />
      ) : null
    case 'remove':
      return <RemoveItem resource={resource} item={open.item} onClose={onClose} onDone={onDone} />
    case 'log':
      return <ItemLog resource={resource} item={open.item} onClose={onClose} />
    case 'message':
      return (
        <Dialog title={one} onClose={onClose}>
          <pre tabIndex={0}>{open.text}</pre>
          <footer>
            <CopyButton text={open.text} />
          </footer>
        </Dialog>
      )
  }
}

interface ItemSettingsProps {
  readonly settings: Settings
  readonly name: string
  readonly id: string
  readonly submitLabel: string
  readonly onClose: () => void
  readonly onDone: () => void
}

/** Shows settings of an item and changes them. */
function ItemSettings({ settings: { label, get, update }, name, id, ...rest }: ItemSettingsProps) {
  const params = paramsOf(id)
  const current = useQuery({
    queryKey: ['settings', label, id],
    queryFn: () => call(get, { params }),
    staleTime: 0,
    gcTime: 0,
  })
  return (
    <FormDialog
      {...rest}
      title={`${label}: ${name}`}
      schema={update.body}
      initial={current.data && withoutNulls(current.data as object)}
      pending={!current.data && <Pending query={current} />}
      send={(body) => call(update, { params, body })}
    />
  )
}

function withoutNulls(value: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null))
}

interface RemoveItemProps {
  readonly resource: Resource
  readonly item: Item
  readonly onClose: () => void
  readonly onDone: () => void
}

function RemoveItem({ resource: { remove, keyOf, nameOf }, item, onClose, onDone }: RemoveItemProps) {
  const drop = useMutation({
    mutationFn: async () => {
      if (remove) await call(remove, { params: paramsOf(keyOf(item)), ...(remove.body && { body: {} }) })
    },
    onSuccess: () => onDone(),
  })
  return (
    <Confirm
      question={common.removeQuestion(nameOf(item))}
      isBusy={drop.isPending}
      error={drop.error}
      onConfirm={() => drop.mutate()}
      onClose={onClose}
    />
  )
}
