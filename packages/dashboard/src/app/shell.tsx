import { getAuthContext } from '@berth/contract/auth/auth-endpoints.ts'
import { signOut } from '@berth/contract/dashboard/dashboard-endpoints.ts'
import type { Project } from '@berth/contract/projects/project.ts'
import { listProjects } from '@berth/contract/projects/project-endpoints.ts'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { ApiError, call, callPage, type ListPage } from '../api/client.ts'
import { listKey } from '../api/list-key.ts'
import { chooseProject, readProject } from '../api/project.ts'
import { Pending } from '../components/feedback.tsx'
import { Logo } from '../components/logo.tsx'
import { words } from '../strings/shell.ts'
import { navigation } from './navigation.ts'
import { useProjectChanges } from './project-changes.ts'

const maxProjects = 2_000

/** The frame of all pages behind the sign-in. */
export function Shell() {
  const navigate = useNavigate()
  const context = useQuery({
    queryKey: ['context'],
    queryFn: () => call(getAuthContext, { project: null }),
    staleTime: Number.POSITIVE_INFINITY,
  })
  const isSignedOut = context.error instanceof ApiError && context.error.status === 401
  useEffect(() => {
    if (isSignedOut) void navigate({ to: '/sign-in', replace: true })
  }, [isSignedOut, navigate])

  if (!context.data) return <main className="sign-in">{!isSignedOut && <Pending query={context} />}</main>
  return <Frame keyProject={context.data.authorization.credential_scope.project_id} />
}

function Frame({ keyProject }: { readonly keyProject: string | null }) {
  const [isMenuOpen, setMenuOpen] = useState(false)
  const path = useRouterState({ select: ({ location }) => location.pathname })
  useProjectChanges()
  // biome-ignore lint/correctness/useExhaustiveDependencies: the menu closes when another page opens.
  useEffect(() => setMenuOpen(false), [path])
  return (
    <div className="shell">
      <a className="skip" href="#content">
        {words.skip}
      </a>
      <header className="top">
        <button
          type="button"
          className="ghost menu-button"
          aria-label={words.menu}
          aria-expanded={isMenuOpen}
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          ☰
        </button>
        <Link to="/sessions" className="brand">
          <Logo />
          <span>{words.brand}</span>
        </Link>
        {keyProject === null && <ProjectSwitch />}
        <span className="spread" />
        <ThemeButton />
        <SignOutButton />
      </header>
      <nav className={isMenuOpen ? 'side open' : 'side'} aria-label={words.pages}>
        {navigation.map(({ title, entries }) => (
          <div key={title}>
            <h2>{title}</h2>
            <ul>
              {entries.map((entry) => (
                <li key={entry.to}>
                  <Link to={entry.to} activeProps={{ className: 'active' }}>
                    {entry.title}
                  </Link>
                </li>
              ))}
            </ul>
          </div>
        ))}
        <h2>{words.help}</h2>
        <ul>
          <li>
            <a href="/docs">{words.docs}</a>
          </li>
          <li>
            <a href="/docs/guides">{words.guides}</a>
          </li>
        </ul>
      </nav>
      <main id="content" tabIndex={0}>
        <Outlet />
      </main>
    </div>
  )
}

function ProjectSwitch() {
  const queries = useQueryClient()
  const [chosen, setChosen] = useState(readProject() ?? '')
  const projects = useQuery({
    queryKey: [...listKey('projects'), 'switch'],
    queryFn: ({ signal }) => listAllProjects(signal),
  })
  const items = projects.data ?? []
  const choose = (id: string) => {
    chooseProject(id || undefined)
    setChosen(id)
    // Both are the same in every project.
    const isOfProject = (key: readonly unknown[]) => key[0] !== 'context' && key[1] !== 'projects'
    void queries.resetQueries({ predicate: ({ queryKey }) => isOfProject(queryKey) })
  }
  const isGone = projects.data !== undefined && chosen !== '' && !items.some(({ id }) => id === chosen)
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a deleted project matters.
  useEffect(() => {
    if (isGone) choose('')
  }, [isGone])
  return (
    <select aria-label={words.project} value={chosen} onChange={({ target }) => choose(target.value)}>
      <option value="">{words.standard}</option>
      {items.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  )
}

/** Loads all pages, so that a chosen project on a later page is not considered deleted. */
async function listAllProjects(signal: AbortSignal): Promise<readonly Project[]> {
  const all: Project[] = []
  for (let offset: number | undefined = 0; offset !== undefined && all.length < maxProjects; ) {
    const page: ListPage<Project> = await callPage(listProjects, {
      query: { limit: 100, offset },
      signal,
      project: null,
    })
    all.push(...page.items)
    offset = page.nextOffset
  }
  return all
}

function ThemeButton() {
  const [theme, setTheme] = useState(document.documentElement.dataset.theme ?? 'light')
  const turn = () => {
    const next = theme === 'dark' ? 'light' : 'dark'
    document.documentElement.dataset.theme = next
    localStorage.setItem('berth.theme', next)
    setTheme(next)
  }
  return (
    <button type="button" className="ghost" aria-label={words.theme} onClick={turn}>
      {theme === 'dark' ? '☀' : '☾'}
    </button>
  )
}

function SignOutButton() {
  const navigate = useNavigate()
  const queries = useQueryClient()
  const leave = async () => {
    await call(signOut, { project: null }).catch(() => {}) // Without a session there is nothing to end.
    chooseProject(undefined)
    await navigate({ to: '/sign-in' })
    queries.clear()
  }
  return (
    <button type="button" onClick={() => void leave()}>
      {words.signOut}
    </button>
  )
}
