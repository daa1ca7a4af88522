import { useInfiniteQuery, useMutation } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { call, callFile, callPage, follow } from '../../api/client.ts'
import { CopyButton } from '../../components/copy-button.tsx'
import { Confirm, Dialog } from '../../components/dialog.tsx'
import { Empty, Failure, Pending } from '../../components/feedback.tsx'
import { saveFile } from '../../components/save-file.ts'
import { SchemaForm } from '../../components/schema-form.tsx'
import { common } from '../../components/strings.ts'
import { ItemSettings } from './item-settings.tsx'
import type { Action, OtherCreate, Resource } from './resource.ts'
import { resources } from './resources.ts'

const words = {
  unknown: 'There is no such page.',
  create: (one: string) => `New ${one}`,
  edit: (one: string) => `Edit ${one}`,
  actions: 'Actions',
  download: 'Download',
  log: 'Log',
  noneFound: 'Nothing matches.',
  saveNow: 'Copy it now: it is not shown again.',
  noLines: 'No line yet.',
}

const route = getRouteApi('/shell/$resource')
const maxLines = 1_000

type Item = never

export function ResourcePage() {
  const { resource: path } = route.useParams()
  const resource = resources.find((each) => each.path === path)
  if (!resource) return <Empty title={words.unknown} />
  return <ResourceList key={path} resource={resource} />
}

type Open =
  | { readonly kind: 'create' }
  | { readonly kind: 'otherCreate'; readonly way: OtherCreate }
  | { readonly kind: 'edit' | 'remove' | 'log' | 'settings'; readonly item: Item }
  | { readonly kind: 'told'; readonly text: string }

function ResourceList({ resource }: { readonly resource: Resource }) {
  const { path, title, one, list, query, searchBy, create, otherCreates = [], keyOf, nameOf } = resource
  const { query: search = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const [open, setOpen] = useState<Open>()
  const items = useInfiniteQuery({
    queryKey: ['resource', path, search],
    queryFn: ({ pageParam, signal }) =>
      callPage(list, {
        query: { limit: 50, ...query?.(), ...pageParam, ...(searchBy && { [searchBy]: search }) },
        signal,
      }),
    initialPageParam: {} as object,
    getNextPageParam: ({ nextOffset, nextToken }) => {
      if (nextToken !== undefined) return { page_token: nextToken }
      return nextOffset === undefined ? undefined : { offset: nextOffset }
    },
    placeholderData: (before) => before,
  })
  const all = (items.data?.pages.flatMap((page) => page.items) ?? []) as unknown as readonly Item[]
  const close = () => setOpen(undefined)
  const done = (text?: string) => {
    setOpen(text === undefined ? undefined : { kind: 'told', text })
    void items.refetch()
  }
  return (
    <>
      <header className="page">
        <h1>{title}</h1>
        <span className="spread" />
        {otherCreates.map((way) => (
          <button key={way.label} type="button" onClick={() => setOpen({ kind: 'otherCreate', way })}>
            {way.label}
          </button>
        ))}
        {create && (
          <button type="button" className="primary" onClick={() => setOpen({ kind: 'create' })}>
            {words.create(one)}
          </button>
        )}
      </header>
      {searchBy && (
        <div className="filters" role="search">
          <input
            type="search"
            aria-label={common.search}
            placeholder={common.search}
            value={search}
            onChange={({ target }) =>
              void navigate({ search: target.value ? { query: target.value } : {}, replace: true })
            }
          />
        </div>
      )}
      {!items.data && <Pending query={items} />}
      {items.data && all.length === 0 && <Empty title={search ? words.noneFound : resource.empty} />}
      {all.length > 0 && <ItemTable resource={resource} items={all} onOpen={setOpen} onDone={done} />}
      {items.hasNextPage && (
        <button type="button" disabled={items.isFetchingNextPage} onClick={() => void items.fetchNextPage()}>
          {common.more}
        </button>
      )}
      {open?.kind === 'create' && <CreateItem resource={resource} onClose={close} onDone={done} />}
      {open?.kind === 'otherCreate' && <MakeItem way={open.way} onClose={close} onDone={done} />}
      {open?.kind === 'settings' && resource.settings && (
        <ItemSettings
          settings={resource.settings}
          name={nameOf(open.item)}
          params={paramsOf(keyOf(open.item))}
          onClose={close}
        />
      )}
      {open?.kind === 'edit' && <EditItem resource={resource} item={open.item} onClose={close} onDone={done} />}
      {open?.kind === 'remove' && <RemoveItem resource={resource} item={open.item} onClose={close} onDone={done} />}
      {open?.kind === 'log' && <ItemLog resource={resource} item={open.item} onClose={close} />}
      {open?.kind === 'told' && (
        <Dialog title={one} onClose={close}>
          <pre tabIndex={0}>{open.text}</pre>
          <footer>
            <CopyButton text={open.text} />
          </footer>
        </Dialog>
      )}
    </>
  )
}

interface ItemTableProps {
  readonly resource: Resource
  readonly items: readonly Item[]
  readonly onOpen: (open: Open) => void
  readonly onDone: (text?: string) => void
}

function ItemTable({ resource, items, onOpen, onDone }: ItemTableProps) {
  const { title, columns, keyOf, nameOf, update, remove, actions = [], file, log, settings, page } = resource
  const params = (item: Item) => paramsOf(keyOf(item))
  const act = useMutation({
    mutationFn: async ({ action, item }: { readonly action: Action<Item>; readonly item: Item }) =>
      action.told((await call(action.endpoint, { params: params(item), body: action.body?.(item) })) as never),
    onSuccess: (text) => onDone(text),
  })
  const save = useMutation({
    mutationFn: async (item: Item) => {
      if (file) saveFile(file.name(item), await callFile(file.endpoint, { params: params(item) }))
    },
  })
  const hasActions = update ?? remove ?? file ?? log ?? settings ?? page ?? actions[0]
  return (
    <>
      <Failure error={act.error ?? save.error} />
      <div className="table-frame" tabIndex={0} role="region" aria-label={title}>
        <table className="stacks">
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column.title}>{column.title}</th>
              ))}
              {hasActions && <th>{words.actions}</th>}
            </tr>
          </thead>
          <tbody>
            {items.map((item) => (
              <tr key={keyOf(item)}>
                {columns.map((column) => (
                  <td key={column.title} data-title={column.title}>
                    {column.value(item) ?? common.none}
                  </td>
                ))}
                {hasActions && (
                  <td data-title={words.actions}>
                    <div className="chips" role="group" aria-label={nameOf(item)}>
                      {actions.map(
                        (action) =>
                          (action.isOffered?.(item) ?? true) && (
                            <button
                              key={action.label}
                              type="button"
                              className="small"
                              disabled={act.isPending}
                              onClick={() => act.mutate({ action, item })}
                            >
                              {action.label}
                            </button>
                          ),
                      )}
                      {page && (
                        <Link
                          className="button small"
                          to={page.to}
                          params={{ vault: keyOf(item), webhook: keyOf(item) }}
                        >
                          {page.label}
                        </Link>
                      )}
                      {settings && (
                        <button type="button" className="small" onClick={() => onOpen({ kind: 'settings', item })}>
                          {settings.label}
                        </button>
                      )}
                      {log && (
                        <button type="button" className="small" onClick={() => onOpen({ kind: 'log', item })}>
                          {words.log}
                        </button>
                      )}
                      {file && (
                        <button type="button" className="small" onClick={() => save.mutate(item)}>
                          {words.download}
                        </button>
                      )}
                      {update && (
                        <button type="button" className="small" onClick={() => onOpen({ kind: 'edit', item })}>
                          {common.edit}
                        </button>
                      )}
                      {remove && (
                        <button type="button" className="small danger" onClick={() => onOpen({ kind: 'remove', item })}>
                          {common.remove}
                        </button>
                      )}
                    </div>
                  </td>
                )}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

interface DialogProps {
  readonly resource: Resource
  readonly onClose: () => void
  readonly onDone: (text?: string) => void
}

function CreateItem({ resource: { one, create, createdText }, onClose, onDone }: DialogProps) {
  const add = useMutation({
    mutationFn: (value: unknown) => {
      if (!create) throw new Error(words.unknown)
      return call(create, { body: create.bodyType ? formOf(value) : value })
    },
    onSuccess: (reply) => {
      const secret = createdText?.(reply as never)
      onDone(secret && `${secret}\n\n${words.saveNow}`)
    },
  })
  if (!create) return null
  return (
    <Dialog title={words.create(one)} onClose={onClose} isWide>
      <SchemaForm
        schema={create.body}
        submitLabel={common.create}
        isBusy={add.isPending}
        error={add.error}
        onSubmit={(value) => add.mutate(value)}
        onClose={onClose}
      />
    </Dialog>
  )
}

interface MakeItemProps {
  readonly way: OtherCreate
  readonly onClose: () => void
  readonly onDone: () => void
}

function MakeItem({ way: { label, schema, make }, onClose, onDone }: MakeItemProps) {
  const add = useMutation({ mutationFn: (value: unknown) => make(value as never), onSuccess: () => onDone() })
  return (
    <Dialog title={label} onClose={onClose} isWide>
      <SchemaForm
        schema={schema}
        submitLabel={common.create}
        isBusy={add.isPending}
        error={add.error}
        onSubmit={(value) => add.mutate(value)}
        onClose={onClose}
      />
    </Dialog>
  )
}

type ItemDialogProps = DialogProps & { readonly item: Item }

function EditItem({ resource: { one, update, initial, keyOf }, item, onClose, onDone }: ItemDialogProps) {
  const change = useMutation({
    mutationFn: async (body: unknown) => {
      if (update) await call(update, { params: paramsOf(keyOf(item)), body })
    },
    onSuccess: () => onDone(),
  })
  if (!update) return null
  return (
    <Dialog title={words.edit(one)} onClose={onClose} isWide>
      <SchemaForm
        schema={update.body}
        initial={initial?.(item) ?? {}}
        submitLabel={common.save}
        isBusy={change.isPending}
        error={change.error}
        onSubmit={(value) => change.mutate(value)}
        onClose={onClose}
      />
    </Dialog>
  )
}

function RemoveItem({ resource: { remove, keyOf, nameOf }, item, onClose, onDone }: ItemDialogProps) {
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

function ItemLog({ resource: { log, keyOf, nameOf }, item, onClose }: Omit<ItemDialogProps, 'onDone'>) {
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

/** Endpoints name their one parameter differently. */
function paramsOf(key: string) {
  return { id: key, id_or_name: key }
}

/** A request with a file: members of objects are written as `env_vars[NAME]`. */
function formOf(value: unknown): FormData {
  const form = new FormData()
  for (const [name, part] of Object.entries(value as object)) {
    if (part instanceof Blob) form.append(name, part)
    else if (typeof part === 'object' && part !== null) {
      for (const [member, text] of Object.entries(part)) form.append(`${name}[${member}]`, String(text))
    } else form.append(name, String(part))
  }
  return form
}
