import {
  deleteVaultItem,
  listVaultItemEvents,
  listVaultItems,
  upsertVaultItem,
} from '@berth/contract/vaults/item-endpoints.ts'
import { ItemFieldName } from '@berth/contract/vaults/item-field.ts'
import { VaultItemKey } from '@berth/contract/vaults/vault.ts'
import { getVault } from '@berth/contract/vaults/vault-endpoints.ts'
import type { VaultItem } from '@berth/contract/vaults/vault-item.ts'
import { useMutation, useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useState } from 'react'
import { z } from 'zod'
import { call } from '../../api/client.ts'
import { listKey } from '../../api/list-key.ts'
import { Confirm, Dialog } from '../../components/dialog.tsx'
import { Badge, Empty, Pending } from '../../components/feedback.tsx'
import { FormDialog } from '../../components/form-dialog.tsx'
import { Age, timeText } from '../../components/format.tsx'
import { PageTitle } from '../../components/page-title.tsx'
import { StackedTable } from '../../components/stacked-table.tsx'
import { common } from '../../strings/common.ts'
import { words } from '../../strings/vault.ts'

const route = getRouteApi('/shell/vaults/$vault')

type Open = { readonly kind: 'create' } | { readonly kind: 'events' | 'remove'; readonly item: VaultItem }

/** The items of a vault: which fields they have, but never their values. */
export function VaultPage() {
  const { vault: id } = route.useParams()
  const [open, setOpen] = useState<Open>()
  const params = { id_or_name: id }
  const vault = useQuery({ queryKey: [...listKey('vaults'), id], queryFn: () => call(getVault, { params }) })
  const items = useQuery({ queryKey: [...listKey('vault-items'), id], queryFn: () => call(listVaultItems, { params }) })
  const remove = useMutation({
    mutationFn: (key: string) => call(deleteVaultItem, { params: { ...params, key } }),
    onSuccess: () => done(),
  })
  const close = () => setOpen(undefined)
  const done = () => {
    close()
    void items.refetch()
  }
  return (
    <>
      <header className="page">
        <Link to="/$resource" params={{ resource: 'vaults' }}>
          {words.all}
        </Link>
        <PageTitle>{vault.data?.name ?? words.title}</PageTitle>
        <span className="spread" />
        <button type="button" className="primary" onClick={() => setOpen({ kind: 'create' })}>
          {words.create}
        </button>
      </header>
      <Pending query={items} />
      {items.data?.length === 0 && <Empty title={words.empty} guide="vaults" />}
      {items.data && items.data.length > 0 && <ItemTable items={items.data} onOpen={setOpen} />}
      {open?.kind === 'create' && <NewItem vault={id} onClose={close} onDone={done} />}
      {open?.kind === 'events' && <ItemEvents vault={id} itemKey={open.item.key} onClose={close} />}
      {open?.kind === 'remove' && (
        <Confirm
          question={common.removeQuestion(open.item.key)}
          isBusy={remove.isPending}
          error={remove.error}
          onConfirm={() => remove.mutate(open.item.key)}
          onClose={close}
        />
      )}
    </>
  )
}

function ItemTable({ items, onOpen }: { readonly items: readonly VaultItem[]; readonly onOpen: (open: Open) => void }) {
  return (
    <StackedTable label={words.items} columns={words.columns}>
      {items.map((item) => (
        <tr key={item.id}>
          <td data-title={words.columns[0]}>
            {item.key}
            {item.spec.description && <p className="quiet">{item.spec.description}</p>}
          </td>
          <td data-title={words.columns[1]}>
            <Badge tone={item.state.status === 'ready' ? 'good' : 'warn'}>{words.states[item.state.status]}</Badge>
          </td>
          <td data-title={words.columns[2]}>
            <Fields item={item} />
          </td>
          <td data-title={words.columns[3]}>
            <Age since={item.updated_at} />
          </td>
          <td data-title={words.columns[4]}>
            <div className="chips" role="group" aria-label={item.key}>
              {item.action && (
                <a className="button small" href={item.action.url} target="_blank" rel="noreferrer">
                  {words.collect}
                </a>
              )}
              <button type="button" className="small" onClick={() => onOpen({ kind: 'events', item })}>
                {words.history}
              </button>
              <button type="button" className="small danger" onClick={() => onOpen({ kind: 'remove', item })}>
                {common.remove}
              </button>
            </div>
          </td>
        </tr>
      ))}
    </StackedTable>
  )
}

function Fields({ item: { spec, state } }: { readonly item: VaultItem }) {
  if (spec.provider !== 'kernel' || state.provider !== 'kernel') return words.ofConnection
  return (
    <span className="badges">
      {spec.fields.map(({ name }) => (
        <Badge key={name} tone={state.fields[name]?.has_value ? 'good' : 'plain'}>
          {words.field(name, state.fields[name]?.has_value ?? false)}
        </Badge>
      ))}
    </span>
  )
}

const NewItemForm = z.object({
  key: VaultItemKey,
  description: z.string().optional().meta({ description: words.descriptionHint }),
  fields: z.array(ItemFieldName).min(1, { error: words.fieldsRule }).meta({ description: words.fieldsHint }),
  secret_fields: z.array(ItemFieldName).optional().meta({ description: words.secretFieldsHint }),
})

interface NewItemProps {
  readonly vault: string
  readonly onClose: () => void
  readonly onDone: () => void
}

function NewItem({ vault, onClose, onDone }: NewItemProps) {
  return (
    <FormDialog
      title={words.create}
      hint={words.createHint}
      schema={NewItemForm}
      submitLabel={common.create}
      send={({ key, description, fields, secret_fields: secrets = [] }: z.output<typeof NewItemForm>) =>
        call(upsertVaultItem, {
          params: { id_or_name: vault, key },
          body: {
            type: 'credential',
            spec: {
              ...(description !== undefined && { description }),
              fields: fields.map((name) =>
                secrets.includes(name) ? { name, type: 'password' } : { name, type: 'text', sensitive: true },
              ),
            },
          } as never,
        })
      }
      onDone={onDone}
      onClose={onClose}
    />
  )
}

interface ItemEventsProps {
  readonly vault: string
  readonly itemKey: string
  readonly onClose: () => void
}

function ItemEvents({ vault, itemKey: key, onClose }: ItemEventsProps) {
  const events = useQuery({
    queryKey: [...listKey('vault-items'), vault, 'events', key],
    queryFn: () => call(listVaultItemEvents, { params: { id_or_name: vault, key } }),
    staleTime: 0,
  })
  return (
    <Dialog title={words.historyOf(key)} onClose={onClose} isWide>
      <Pending query={events} />
      <ul className="files">
        {events.data?.map(({ id, created_at, name, browser_id }) => (
          <li key={id}>
            <time dateTime={created_at}>{timeText(created_at)}</time> {name} {browser_id && <code>{browser_id}</code>}
          </li>
        ))}
      </ul>
      {events.data?.length === 0 && <p className="quiet">{words.noEvents}</p>}
    </Dialog>
  )
}
