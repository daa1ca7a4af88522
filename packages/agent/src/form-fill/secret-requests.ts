import type { agentRoutes } from '@berth/contract/agent/agent-routes.ts'
import type { FillFormFieldsRequest, FindFormFieldsRequest } from '@berth/contract/agent/form-fill-endpoints.ts'
import type { InvokeSealedToolRequest } from '@berth/contract/agent/sealing-endpoints.ts'
import { memoize } from '@berth/runtime/async/memoize.ts'
import type { RouteHandlers } from '@berth/runtime/http/mount-routes.ts'
import type { Browser } from '../browser/browser.ts'
import { CdpSecret } from '../browser/cdp-secret.ts'
import { readJson, sendJson } from '../http/json-body.ts'
import type { Activity } from '../reporting/activity.ts'
import type { WebMcp } from '../webmcp/webmcp.ts'

type Requests = 'findFormFields' | 'fillFormFields' | 'makeSealingKey' | 'invokeSealedTool'

interface SecretRequestsOptions {
  readonly browser: Browser
  readonly activity: Activity
  readonly webMcp: () => Promise<WebMcp>
}

/** Everything by which values of vaults come into pages. What it takes is loaded with the first request. */
export function secretRequests({
  browser,
  activity,
  webMcp,
}: SecretRequestsOptions): Pick<RouteHandlers<typeof agentRoutes>, Requests> {
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
    invokeSealedTool: async (request, response) => {
      response.once('close', activity.begin())
      const left = new AbortController()
      response.once('close', () => left.abort())
      const { sealed_input, ...asked } = await readJson<InvokeSealedToolRequest>(request)
      const [json = new Uint8Array()] = await (await keys()).open(sealed_input)
      const input = new CdpSecret(json)
      try {
        const invocation = await (await webMcp()).invokeSealed(asked, input, left.signal)
        if (!response.destroyed) sendJson(response, 200, invocation)
      } finally {
        input.overwrite()
      }
    },
  }
}
