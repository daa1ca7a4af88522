import type { loginRoutes } from '@berth/contract/agent/login/login-routes.ts'
import { memoize } from '@berth/runtime/async/memoize.ts'
import type { RouteHandler, RouteHandlers } from '@berth/runtime/http/mount-routes.ts'
import type { Browser } from '../browser/browser.ts'
import { readJson, sendJson } from '../http/json-body.ts'
import type { Activity } from '../reporting/activity.ts'
import type { LoginDriver } from './login-driver.ts'

/** The server's requests for a login. The driver is loaded with the first request. */
export function loginRequests(browser: Browser, activity: Activity): RouteHandlers<typeof loginRoutes> {
  const driver = memoize(async () => {
    const { LoginDriver } = await import('./login-driver.ts')
    return new LoginDriver(browser)
  })
  const answer =
    <Request>(work: (driver: LoginDriver, request: Request, signal: AbortSignal) => Promise<object>): RouteHandler =>
    async (request, response) => {
      response.once('close', activity.begin())
      const left = new AbortController()
      response.once('close', () => left.abort())
      const reply = await work(await driver(), await readJson<Request>(request), left.signal)
      if (!response.destroyed) sendJson(response, 200, reply)
    }
  return {
    openLogin: answer((login, request: Parameters<LoginDriver['open']>[0], signal) => login.open(request, signal)),
    observeLogin: answer((login, request: Parameters<LoginDriver['observe']>[0], signal) =>
      login.observe(request, signal),
    ),
    submitLogin: answer((login, request: Parameters<LoginDriver['submit']>[0], signal) =>
      login.submit(request, signal),
    ),
    chooseLogin: answer((login, request: Parameters<LoginDriver['choose']>[0], signal) =>
      login.choose(request, signal),
    ),
    checkLogin: answer((login, request: Parameters<LoginDriver['check']>[0], signal) => login.check(request, signal)),
  }
}
