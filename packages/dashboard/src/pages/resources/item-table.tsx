import { useMutation } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { call, callFile } from '../../api/client.ts'
import { Failure } from '../../components/feedback.tsx'
import { saveFile } from '../../components/save-file.ts'
import { StackedTable } from '../../components/stacked-table.tsx'
import { common } from '../../strings/common.ts'
import { words } from '../../strings/resources.ts'
import type { OpenDialog } from './item-dialogs.tsx'
import { type Action, type Item, paramsOf, type Resource } from './resource.ts'

interface ItemTableProps {
  readonly resource: Resource
  readonly items: readonly Item[]
  readonly onOpen: (open: OpenDialog) => void
  readonly onDone: (text?: string) => void
}

export function ItemTable({ resource, items, onOpen, onDone }: ItemTableProps) {
  const { title, columns, keyOf, nameOf, update, remove, actions = [], file, log, settings, page } = resource
  const params = (item: Item) => paramsOf(keyOf(item))
  const act = useMutation({
    mutationFn: async ({ action, item }: { readonly action: Action<Item>; readonly item: Item }) =>
      action.messageOf((await call(action.endpoint, { params: params(item), body: action.body?.(item) })) as never),
    onSuccess: (text) => onDone(text),
  })
  const save = useMutation({
    mutationFn: async (item: Item) => {
      if (file) saveFile(file.name(item), await callFile(file.endpoint, { params: params(item) }))
    },
  })
  const hasActions = update ?? remove ?? file ?? log ?? settings ?? page ?? actions[0]
  const titles = [...columns.map((column) => column.title), ...(hasActions ? [words.actions] : [])]
  return (
    <>
      <Failure error={act.error ?? save.error} />
      <StackedTable label={title} columns={titles}>
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
                    <Link className="button small" to={page.to} params={{ vault: keyOf(item), webhook: keyOf(item) }}>
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
      </StackedTable>
    </>
  )
}
