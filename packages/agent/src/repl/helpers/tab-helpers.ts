import type { Deadline } from '../../script-process/deadline.ts'
import type { AttachedTab, Tab } from './attached-tab.ts'
import type { BrowserLine } from './browser-line.ts'

/** A page that hangs in its unload handler closes later. */
const closeSeconds = 3

type TabOrId = string | { readonly targetId: string }

/** Tabs and frames. */
export function tabHelpers(line: BrowserLine, tab: AttachedTab, deadline: Deadline) {
  const idOf = (target: TabOrId) => (typeof target === 'string' ? target : target.targetId)

  async function listTabs(includeChrome = true): Promise<Tab[]> {
    return tab.list(includeChrome)
  }

  async function currentTab(): Promise<Tab> {
    return tab.current()
  }

  async function switchTab(target: TabOrId) {
    await tab.switchTo(idOf(target))
  }

  /** Uses a blank tab if there is one. */
  async function newTab(url = 'about:blank'): Promise<string> {
    const blank = (await tab.list(true)).find(
      (found) => found.url === 'about:blank' || found.url === 'chrome://newtab/',
    )
    const targetId = blank?.targetId ?? (await line.send('Target.createTarget', { url: 'about:blank' })).targetId
    await tab.switchTo(targetId)
    if (url !== 'about:blank') await tab.send('Page.navigate', { url })
    return targetId
  }

  async function closeTab(target?: TabOrId) {
    const targetId = target === undefined ? (await tab.current()).targetId : idOf(target)
    await line.send('Target.closeTarget', { targetId })
    // Chromium answers before it closes the tab.
    const isGone = async () => (await tab.list(true)).every((found) => found.targetId !== targetId) || undefined
    await deadline.poll(closeSeconds, isGone)
  }

  /** Switches from a page of the browser itself, or a closed tab, to one with a web page. */
  async function ensureRealTab(): Promise<Tab | null> {
    const real = await tab.list(false)
    const current = await tab.current().catch(() => undefined)
    const kept = real.find(({ targetId }) => targetId === current?.targetId)
    const [found] = kept ? [kept] : real
    if (found && !kept) await tab.switchTo(found.targetId)
    return found ?? null
  }

  async function iframeTarget(urlSubstring: string) {
    const { targetInfos } = await line.send('Target.getTargets')
    const frames = targetInfos as { targetId: string; url: string; title: string; type: string }[]
    const found = frames.find(({ type, url }) => type === 'iframe' && url.includes(urlSubstring))
    return found ? { targetId: found.targetId, url: found.url, title: found.title, type: found.type } : null
  }

  return { listTabs, currentTab, switchTab, newTab, closeTab, ensureRealTab, iframeTarget }
}
