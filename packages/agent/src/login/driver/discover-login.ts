import { type LoginLink, loginLinks, wellKnownPaths } from '../analysis/find-login-page.ts'
import type { LoginTab } from '../login-tab.ts'
import { press } from '../press.ts'
import { isLogin, type PageViews, type Rule, type View, type Wait } from './page-views.ts'

const maxLinks = 3

interface Discovery {
  readonly tab: LoginTab
  readonly views: PageViews
  readonly rule: Rule
  readonly wait: Wait
}

/** Searches for the login page: first through links, then at common paths. */
export async function discoverLogin(home: View, { tab, views, rule, wait }: Discovery): Promise<View | undefined> {
  const homeUrl = home.reading.url
  const tried = new Set<string>()
  let view: View | undefined = home
  for (let depth = 0; depth < maxLinks && view; depth++) {
    const link: LoginLink | undefined = loginLinks(view.reading).find(
      ({ href, control }) => !tried.has(href || `${control?.selector}`),
    )
    if (!link) break
    tried.add(link.href || `${link.control?.selector}`)
    const next: View | undefined = await follow(view, link, { tab, views, rule, wait })
    if (next && isLogin(next, true)) return next
    view = next ?? view
  }
  const origin = URL.canParse(homeUrl) ? new URL(homeUrl).origin : undefined
  for (const path of origin === undefined || origin === 'null' ? [] : wellKnownPaths) {
    if (wait.end - performance.now() < 3_000 || wait.signal.aborted) break
    if (tried.has(`${origin}${path}`)) continue
    if ((await views.navigate(`${origin}${path}`, wait)) !== undefined) continue
    const { page } = await tab.current()
    if ((page.status ?? 200) >= 400) continue
    const next = await views.look(rule, wait)
    if (next && isLogin(next, true)) return next
  }
  const last = await views.look(rule, wait)
  if (!last || !['not_found', 'loading'].includes(last.judgement.page.state)) return last
  const page = { ...last.judgement.page, state: 'not_found' as const, problem: 'login_form_not_found' as const }
  return { ...last, judgement: { ...last.judgement, page } }
}

async function follow(
  view: View,
  { control, href }: LoginLink,
  { views, rule, wait }: Discovery,
): Promise<View | undefined> {
  const frame = control && view.frames[control.frame]
  if (frame && control && !control.isOutOfSight) {
    const pressed = await press(frame, control.at)
    const next = pressed === 'pressed' ? await views.look(rule, { ...wait, from: view.signature }) : undefined
    if (next && next.signature !== view.signature) return next
  }
  if (href === '' || (await views.navigate(href, wait)) !== undefined) return undefined
  return views.look(rule, wait)
}
