import { chromium } from 'playwright-core'
import type WebSocket from 'ws'
import { CdpClient } from '../e2e/testing/cdp.ts'

export interface ConnectedClient {
  /** Resolves when the browser's first page has loaded the URL. */
  load(url: string): Promise<void>
  close(): Promise<void>
}

/** Client connections by name. Each resolves after the browser's first response. */
export const clients = { 'raw CDP': connectRaw, Playwright: connectPlaywright } as const
export type ClientName = keyof typeof clients

async function connectRaw(cdpUrl: string): Promise<ConnectedClient> {
  const client = await CdpClient.open(cdpUrl)
  await client.send('Browser.getVersion')
  return {
    load: async (url) => {
      const page = await attachToFirstPage(client)
      await client.send('Page.enable', {}, page)
      const loaded = untilEvent(client.socket, 'Page.loadEventFired')
      await client.send('Page.navigate', { url }, page)
      await loaded
    },
    close: () => client.close(),
  }
}

async function attachToFirstPage(client: CdpClient): Promise<string> {
  // A browser whose port has just opened may not have created its page yet.
  const created = untilEvent(client.socket, 'Target.targetCreated', ({ targetInfo }) => targetInfo?.type === 'page')
  await client.send('Target.setDiscoverTargets', { discover: true })
  const { targetInfo } = await created
  const { sessionId } = await client.send('Target.attachToTarget', { targetId: targetInfo?.targetId, flatten: true })
  return sessionId as string
}

interface EventParams {
  readonly targetInfo?: { readonly type: string; readonly targetId: string }
}

function untilEvent(
  socket: WebSocket,
  method: string,
  isMeant: (params: EventParams) => boolean = () => true,
): Promise<EventParams> {
  return new Promise((resolve, reject) => {
    const take = (data: WebSocket.RawData) => {
      const message = JSON.parse(String(data))
      if (message.method !== method || !isMeant(message.params)) return
      socket.off('message', take)
      resolve(message.params)
    }
    socket.on('message', take)
    socket.once('close', () => reject(new Error(`the websocket closed before ${method}`)))
  })
}

async function connectPlaywright(cdpUrl: string): Promise<ConnectedClient> {
  const browser = await chromium.connectOverCDP(cdpUrl)
  return {
    load: async (url) => {
      const [context] = browser.contexts()
      const page = context?.pages()[0] ?? (await context?.newPage())
      await page?.goto(url)
    },
    close: () => browser.close(),
  }
}
