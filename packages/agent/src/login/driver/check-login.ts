import type { CheckLoginReply, CheckLoginRequest } from '@berth/contract/agent/login/login-endpoints.ts'
import { compareEvidence, signsOf } from '../analysis/evidence.ts'
import { homePages, isSurely } from '../analysis/find-login-page.ts'
import { LoginAttempt } from '../login-attempt.ts'
import type { LoginTab } from '../login-tab.ts'
import { isLogin, type PageViews, type View } from './page-views.ts'

/** Compares what the browser shows with the evidence of the last login. Types and presses nothing. */
export async function checkLogin(
  request: CheckLoginRequest,
  { tab, views, signal }: { tab: LoginTab; views: PageViews; signal: AbortSignal },
): Promise<CheckLoginReply> {
  const { domain, url, evidence, timeout_ms = 30_000 } = request
  const wait = { end: performance.now() + timeout_ms, signal }
  const target = url ?? evidence?.url
  const attempt = new LoginAttempt(domain, target, [])
  views.attempt = attempt
  for (const each of target === undefined ? homePages(domain) : [target]) {
    attempt.netError = await views.navigate(each, wait)
    if (attempt.netError === undefined) break
  }
  let view: View | undefined
  if (attempt.netError === undefined) view = await views.rest(request, wait)
  const cookies = view ? attempt.newCookies(await tab.cookies(), view.reading.url) : []
  const signs = view
    ? signsOf(view.reading, isSurely(view.judgement.form) ? view.judgement.form : undefined, undefined)
    : []
  const found = {
    url: view?.reading.url.slice(0, 2_000) ?? target ?? domain,
    signs: [...signs],
    cookies: [...cookies],
  }
  const problem = attempt.netError ?? (view ? problemOf(view) : 'ERR_TIMED_OUT')
  if (problem !== undefined || !view)
    return { logged_in: 'unknown', evidence: found, ...(problem !== undefined && { problem }) }
  const isSame = compareEvidence({ signs, url: view.reading.url, cookies }, evidence)
  const isLoginPage = isLogin(view, true) && view.judgement.page.state !== 'logged_in' && !signs.includes('sign_out')
  const loggedIn = isLoginPage ? 'no' : isSame === undefined ? 'unknown' : isSame ? 'yes' : 'no'
  return { logged_in: loggedIn, evidence: found }
}

/** Why a page gives no evidence about the login. */
function problemOf({ judgement: { page }, isIdle }: View): string | undefined {
  if (page.state === 'blocked' || page.state === 'captcha' || page.state === 'error')
    return page.problem ?? 'website_error'
  return isIdle ? undefined : 'loading'
}
