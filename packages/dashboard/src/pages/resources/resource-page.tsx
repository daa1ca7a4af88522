import { useInfiniteQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { callPage } from '../../api/client.ts'
import { listKey } from '../../api/list-key.ts'
import { Empty, Pending } from '../../components/feedback.tsx'
import { PageTitle } from '../../components/page-title.tsx'
import { common } from '../../strings/common.ts'
import { words } from '../../strings/resources.ts'
import { MissingPage } from '../missing-page.tsx'
import { ItemDialog, type OpenDialog } from './item-dialogs.tsx'
import { ItemTable } from './item-table.tsx'
import type { Item, Resource } from './resource.ts'
import { resources } from './resources.ts'

const route = getRouteApi('/shell/$resource')

export function ResourcePage() {
  const { resource: path } = route.useParams()
  const resource = resources.find((each) => each.path === path)
  if (!resource) return <MissingPage />
  return <ResourceList key={path} resource={resource} />
}

function ResourceList({ resource }: { readonly resource: Resource }) {
  const { path, title, one, list, query, searchBy, create, otherCreates = [] } = resource
  const { query: search = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const [open, setOpen] = useState<OpenDialog>()
  const items = useInfiniteQuery({
    queryKey: [...listKey(path), search],
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
  const done = (text?: string) => {
    setOpen(text === undefined ? undefined : { kind: 'message', text })
    void items.refetch()
  }
  return (
    <>
      <header className="page">
        <PageTitle>{title}</PageTitle>
        <span className="spread" />
        {otherCreates.map((otherCreate) => (
          <button key={otherCreate.label} type="button" onClick={() => setOpen({ kind: 'otherCreate', otherCreate })}>
            {otherCreate.label}
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
      <Pending query={items} />
      {items.data && all.length === 0 && search !== '' && <Empty title={words.noneFound} />}
      {items.data && all.length === 0 && search === '' && <Empty title={resource.empty} guide={resource.guide} />}
      {all.length > 0 && <ItemTable resource={resource} items={all} onOpen={setOpen} onDone={done} />}
      {items.hasNextPage && (
        <button type="button" disabled={items.isFetchingNextPage} onClick={() => void items.fetchNextPage()}>
          {common.more}
        </button>
      )}
      {open && <ItemDialog resource={resource} open={open} onClose={() => setOpen(undefined)} onDone={done} />}
    </>
  )
}
