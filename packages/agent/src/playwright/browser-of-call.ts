import type { Worker } from 'node:worker_threads'
import type { Browser, BrowserContext, BrowserType, Page } from 'playwright-core'
import { tabsByActivity } from '../browser/targets/tabs.ts'
import type { BrowserAddress, TabChoice } from './executor-messages.ts'
import { GatedConnection } from './gated-connection.ts'

export interface BrowserOfCall {
  readonly browser: Browser
  readonly context: BrowserContext
  readonly page: Page
  readonly targetId: string
  readonly created: boolean
  /** Whether the requested tab exists but does not answer. */
  readonly replacesStuckTab: boolean
  /** Ends the connection. The call's changes to tabs remain; Playwright's settings do not. */
  close(): Promise<void>
}

interface OpenOptions {
  readonly chromium: BrowserType
  readonly gate: Worker
  readonly address: BrowserAddress
  readonly tab: TabChoice
  readonly tabLimitMilliseconds: number
}

/** Connects Playwright to the browser, with the tab of the call. */
export async function openBrowser({
  chromium,
  gate,
  address,
  tab,
  tabLimitMilliseconds,
}: OpenOptions): Promise<BrowserOfCall> {
  const known = tab.kind === 'shown' ? (await tabsByActivity(address))[0] : tab.targetId
  const connection = await GatedConnection.open(gate, address, { targetId: known, tabLimitMilliseconds })
  // Before Playwright connects, so that it never sees another tab first.
  const opened = known === undefined || !(await isOpen(connection, known)) ? await newTab(connection, tab) : undefined
  // Without defaults that would affect other clients: download location, fonts, media (the gate adds what clicks need).
  const browser = await chromium.connectOverCDP(connection, { noDefaults: true, isLocal: true, timeout: 0 })
  const [context] = browser.contexts() as [BrowserContext]
  const close = async () => {
    await browser.close()
    await connection.closed
  }
  const found = pageOf(context, opened ?? (known as string))
  if (found) {
    return {
      browser,
      context,
      page: found,
      targetId: targetOf(found),
      created: opened !== undefined,
      replacesStuckTab: false,
      close,
    }
  }
  const page = await context.newPage()
  return { browser, context, page, targetId: targetOf(page), created: true, replacesStuckTab: true, close }
}

async function isOpen(connection: GatedConnection, targetId: string): Promise<boolean> {
  return connection.command('Target.getTargetInfo', { targetId }).then(
    () => true,
    () => false,
  )
}

/** An executor's own tab opens behind the one that people and other callers look at. */
async function newTab(connection: GatedConnection, { kind }: TabChoice): Promise<string> {
  const { targetId } = await connection.command('Target.createTarget', {
    url: 'about:blank',
    background: kind === 'own',
  })
  return targetId as string
}

function pageOf(context: BrowserContext, targetId: string): Page | undefined {
  return context.pages().find((page) => targetOf(page) === targetId)
}

/**
 * Playwright does not expose the target id, and querying each page would take a round trip per tab, or forever for one
 * that hangs.
 */
function targetOf(page: Page): string {
  const { _connection: connection } = page as unknown as { _connection: { toImpl(page: Page): PageImplementation } }
  return connection.toImpl(page).delegate._targetId
}

interface PageImplementation {
  readonly delegate: { readonly _targetId: string }
}
