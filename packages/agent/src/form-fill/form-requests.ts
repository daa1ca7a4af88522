import type { agentRoutes } from '@berth/contract/agent/agent-routes.ts'
import type { FillFormFieldsRequest, FindFormFieldsRequest } from '@berth/contract/agent/login/form-fill-endpoints.ts'
import { memoize } from '@berth/runtime/async/memoize.ts'
import type { RouteHandlers } from '@berth/runtime/http/mount-routes.ts'
import type { Browser } from '../browser/browser.ts'
import { readJson, sendJson } from '../http/json-body.ts'
import type { Activity } from '../reporting/activity.ts'

type Requests = 'findFormFields' | 'fillFormFields' | 'makeSealingKey'

/** The server's requests to fill in forms. The code is loaded with the first request. */
export function formRequests(browser: Browser, activity: Activity): Pick<RouteHandlers<typeof agentRoutes>, Requests> {
  const keys = memoize(async () => {
    const { SealingKeys } = await import('@berth/runtime/sealing/sealing-keys.ts')
    return new SealingKeys()
  })
  const forms = memoize(async () => {
    const { FormFiller } = await import('./form-filler.ts')
    return new FormFiller(browser, await keys())
  })
  return {
    makeSealingKey: async (request, response) => {
      request.resume()
      sendJson(response, 200, await (await keys()).make())
    },
    findFormFields: async (request, response) => {
      response.once('close', activity.begin())
      const left = new AbortController()
      response.once('close', () => left.abort())
      const found = await (await forms()).find(await readJson<FindFormFieldsRequest>(request), left.signal)
      if (!response.destroyed) sendJson(response, 200, found)
    },
    fillFormFields: async (request, response) => {
      response.once('close', activity.begin())
      const filled = await (await forms()).fill(await readJson<FillFormFieldsRequest>(request))
      if (!response.destroyed) sendJson(response, 200, filled)
    },
  }
}
