import type { Browser } from '@berth/contract/browsers/browser.ts'
import { deleteBrowser, listBrowsers } from '@berth/contract/browsers/browser-endpoints.ts'
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import { type Dispatch, memo, type SetStateAction, useCallback, useEffect, useRef, useState } from 'react'
import { call, callPage } from '../../api/client.ts'
import { Confirm } from '../../components/dialog.tsx'
import { Badge, Empty, Pending } from '../../components/feedback.tsx'
import { Age } from '../../components/format.tsx'
import { PageTitle } from '../../components/page-title.tsx'
import { common } from '../../strings/common.ts'
import { words } from '../../strings/sessions.ts'
import { EditSession, NewSession } from './session-dialogs.tsx'
import { SessionBadges, stateOf } from './session-state.tsx'
import { Thumbnail } from './thumbnail.tsx'

const route = getRouteApi('/shell/sessions')
const rowPixels = 76
const headPixels = 42
const pageSize = 100

/** The sessions to show, according to the address of the page. */
function useSessions() {
  const { query, status = 'active', tags } = route.useSearch()
  return useInfiniteQuery({
    queryKey: ['sessions', { query, status, tags }],
    queryFn: ({ pageParam, signal }) =>
      callPage(listBrowsers, {
        query: { limit: pageSize, offset: pageParam, status, query, tags: pairsOf(tags) },
        signal,
      }),
    initialPageParam: 0,
    getNextPageParam: (page) => page.nextOffset,
    placeholderData: (before) => before,
  })
}

export function SessionsPage() {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const sessions = useSessions()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const [edited, setEdited] = useState<Browser>()
  const [isDeleting, setDeleting] = useState(false)
  const all = sessions.data?.pages.flatMap(({ items }) => items) ?? []
  const picked = all.filter(({ session_id, deleted_at }) => chosen.has(session_id) && !deleted_at)
  const isFiltered = search.query !== undefined || search.tags !== undefined || search.status !== undefined
  const setCreating = (create: boolean) =>
    void navigate({ search: ({ create: _, ...rest }) => (create ? { ...rest, create } : rest) })
  return (
    <>
      <header className="page">
        <PageTitle>{words.title}</PageTitle>
        <span className="spread" />
        {picked.length > 0 && (
          <>
            <span className="quiet">{common.selected(picked.length)}</span>
            <button type="button" className="danger" onClick={() => setDeleting(true)}>
              {words.removeChosen}
            </button>
          </>
        )}
        <button type="button" className="primary" onClick={() => setCreating(true)}>
          {words.create}
        </button>
      </header>
      <Filters />
      <Pending query={sessions} />
      {sessions.data && all.length === 0 && (
        <Empty title={isFiltered ? words.noneFound : words.empty} guide={isFiltered ? undefined : 'sessions'}>
          {!isFiltered && <p>{words.emptyHint}</p>}
        </Empty>
      )}
      {all.length > 0 && (
        <SessionRows sessions={all} chosen={chosen} onChoose={setChosen} onEdit={setEdited} list={sessions} />
      )}
      {search.create && <NewSession onClose={() => setCreating(false)} />}
      {edited && <EditSession session={edited} onClose={() => setEdited(undefined)} />}
      {isDeleting && (
        <DeleteSessions
          sessions={picked}
          onClose={() => {
            setDeleting(false)
            setChosen(new Set())
          }}
        />
      )}
    </>
  )
}

function Filters() {
  const { query = '', status = 'active', tags = '' } = route.useSearch()
  const navigate = route.useNavigate()
  const change = (part: Record<string, string | undefined>) =>
    void navigate({
      search: (before) => Object.fromEntries(Object.entries({ ...before, ...part }).filter(([, text]) => text)),
      replace: true,
    })
  return (
    <div className="filters" role="search">
      <input
        type="search"
        aria-label={common.search}
        placeholder={words.searchHint}
        value={query}
        onChange={({ target }) => change({ query: target.value })}
      />
      <input
        aria-label={words.tags}
        placeholder={words.tagsHint}
        value={tags}
        onChange={({ target }) => change({ tags: target.value })}
      />
      <select
        aria-label={words.state}
        value={status}
        onChange={({ target }) => change({ status: target.value === 'active' ? undefined : target.value })}
      >
        {Object.entries(words.states).map(([value, title]) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
    </div>
  )
}

interface SessionRowsProps {
  readonly sessions: readonly Browser[]
  readonly chosen: ReadonlySet<string>
  readonly onChoose: Dispatch<SetStateAction<ReadonlySet<string>>>
  readonly onEdit: (session: Browser) => void
  readonly list: Pick<ReturnType<typeof useSessions>, 'hasNextPage' | 'isFetching' | 'isError' | 'fetchNextPage'>
}

/** Renders only visible rows, and loads the next page when its rows become visible. */
function SessionRows({ sessions, chosen, onChoose, onEdit, list }: SessionRowsProps) {
  const frame = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count: sessions.length,
    getScrollElement: () => frame.current,
    estimateSize: () => rowPixels,
    overscan: 6,
    getItemKey: (index) => sessions[index]?.session_id ?? index,
  })
  const shown = rows.getVirtualItems()
  const isAtEnd = (shown.at(-1)?.index ?? 0) >= sessions.length - 10
  const { hasNextPage, isFetching, isError, fetchNextPage } = list
  useEffect(() => {
    // After a failure the user decides when to retry.
    if (isAtEnd && hasNextPage && !isFetching && !isError) void fetchNextPage()
  }, [isAtEnd, hasNextPage, isFetching, isError, fetchNextPage])

  const choose = useCallback(
    (id: string, isChosen: boolean) =>
      onChoose((before) => new Set(isChosen ? [...before, id] : [...before].filter((other) => other !== id))),
    [onChoose],
  )
  const areAllChosen = sessions.every(({ session_id }) => chosen.has(session_id))
  return (
    <div
      className="rows"
      role="table"
      aria-label={words.title}
      aria-rowcount={hasNextPage ? -1 : sessions.length + 1}
      style={{ minHeight: headPixels + Math.min(3, sessions.length) * rowPixels }}
    >
      <div role="row" className="row head">
        <span role="columnheader">
          <input
            type="checkbox"
            aria-label={words.chooseAll}
            checked={areAllChosen}
            onChange={() => onChoose(new Set(areAllChosen ? [] : sessions.map(({ session_id }) => session_id)))}
          />
        </span>
        {words.columns.map((title) => (
          <span role="columnheader" key={title}>
            {title}
          </span>
        ))}
      </div>
      <div ref={frame} role="rowgroup" className="scroll" tabIndex={0} aria-label={words.title}>
        <div className="canvas" style={{ height: rows.getTotalSize() }}>
          {shown.map(({ index, start, key }) => {
            const session = sessions[index] as Browser
            return (
              <SessionRow
                key={key}
                session={session}
                index={index}
                start={start}
                isChosen={chosen.has(session.session_id)}
                onChoose={choose}
                onEdit={onEdit}
              />
            )
          })}
        </div>
      </div>
    </div>
  )
}

interface SessionRowProps {
  readonly session: Browser
  readonly index: number
  readonly start: number
  readonly isChosen: boolean
  readonly onChoose: (id: string, isChosen: boolean) => void
  readonly onEdit: (session: Browser) => void
}

/** Memoized, so that scrolling does not render unchanged sessions again. */
const SessionRow = memo(function SessionRow(props: SessionRowProps) {
  const { session, index, start, isChosen, onChoose, onEdit } = props
  const { session_id: id, name } = session
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      className="row"
      style={{ transform: `translateY(${start}px)`, height: rowPixels }}
    >
      <span role="cell">
        <input
          type="checkbox"
          aria-label={words.choose(name ?? id)}
          checked={isChosen}
          onChange={({ target }) => onChoose(id, target.checked)}
        />
      </span>
      <span role="cell">
        <Thumbnail session={session} />
      </span>
      <span role="cell" className="name">
        <Link to="/sessions/$id" params={{ id }}>
          {name ?? id}
        </Link>
        <SessionBadges session={session} />
      </span>
      <span role="cell">
        <Badge tone={session.deleted_at ? 'plain' : 'good'}>{words.stateNames[stateOf(session)]}</Badge>
      </span>
      <span role="cell">
        <Age since={session.created_at} />
      </span>
      <span role="cell" className="tags">
        {Object.entries(session.tags ?? {}).map(([key, value]) => (
          <code key={key}>
            {key}={value}
          </code>
        ))}
      </span>
      <span role="cell">
        {!session.deleted_at && (
          <button type="button" className="small" onClick={() => onEdit(session)}>
            {common.edit}
          </button>
        )}
      </span>
    </div>
  )
})

function DeleteSessions({
  sessions,
  onClose,
}: {
  readonly sessions: readonly Browser[]
  readonly onClose: () => void
}) {
  const queries = useQueryClient()
  const remove = useMutation({
    mutationFn: async () => {
      // A few at a time: each ends a browser and may save a profile.
      const rest = [...sessions]
      const work = async () => {
        for (let next = rest.pop(); next; next = rest.pop()) {
          await call(deleteBrowser, { params: { id_or_name: next.session_id } })
        }
      }
      await Promise.all([work(), work(), work(), work()])
    },
    onSuccess: onClose,
    // Another server does not report its events here.
    onSettled: () => queries.invalidateQueries({ queryKey: ['sessions'] }),
  })
  return (
    <Confirm
      question={words.removeQuestion(sessions.length)}
      warning={words.removeWarning}
      isBusy={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    />
  )
}

/** Parses `env=prod, team=qa`. A tag without a value is still being typed. */
function pairsOf(text: string | undefined): Record<string, string> | undefined {
  const pairs = (text ?? '')
    .split(',')
    .map((pair) => pair.trim().split('='))
    .filter((pair): pair is [string, string] => Boolean(pair[0] && pair[1]))
  return pairs.length > 0 ? Object.fromEntries(pairs) : undefined
}
