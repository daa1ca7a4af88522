import type { IncomingMessage, ServerResponse } from 'node:http'
import { finished, pipeline } from 'node:stream/promises'
import type { RouteHandler } from '@berth/runtime/http/mount-routes.ts'
import { sendJson } from '../../http/json-body.ts'
import type { Activity } from '../../reporting/activity.ts'
import type { Browser } from '../browser.ts'

/** The server's requests about the state of the browser. */
export function profileRequests(browser: Browser, activity: Activity) {
  return {
    loadProfile: async (request: IncomingMessage, response: ServerResponse) => {
      // Before the first launch no idle time is counted.
      if (browser.hasBegun) response.once('close', activity.begin())
      const tabs = new URLSearchParams(request.url?.split('?')[1]).get('tabs') === 'blank' ? 'blank' : 'restore'
      try {
        await browser.loadProfile(request, tabs)
        response.writeHead(204).end()
      } catch (error) {
        // Read the rest of the request first: an early response would be lost with the connection.
        await finished(request.resume()).catch(() => {})
        sendJson(response, 500, { code: 'profile_not_loadable', message: (error as Error).message })
      }
    },
    giveOutProfile: async (_request: IncomingMessage, response: ServerResponse) => {
      const archive = await browser.giveOutProfile()
      response.writeHead(200, { 'content-type': 'application/octet-stream' })
      // Break the response if the archive fails halfway, so that nobody takes it for a complete one.
      await pipeline(archive, response).catch(() => response.destroy())
    },
    takeProfileBack: async (_request: IncomingMessage, response: ServerResponse) => {
      await browser.takeProfileBack()
      response.writeHead(204).end()
    },
  } satisfies Readonly<Record<string, RouteHandler>>
}
