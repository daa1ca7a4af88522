import { BerthError } from '@berth/contract/errors.ts'
import type { Browser } from '../browser/browser.ts'
import { closeTab } from '../browser/targets/close-tab.ts'
import { tabsByActivity } from '../browser/targets/tabs.ts'

export interface Tab {
  readonly id: string
  readonly targetId: string
  readonly url: string
  readonly title: string
}

/** Tabs with short names, which language models repeat without errors. A name is never reused. */
export class Tabs {
  readonly #browser: Browser
  readonly #ids = new Map<string, string>()
  #last = 0

  constructor(browser: Browser) {
    this.#browser = browser
  }

  /** The front tab first. */
  async list(): Promise<readonly Tab[]> {
    const [pipe, endpoint] = await Promise.all([this.#browser.pipe(), this.#browser.endpoint()])
    const [order, { targetInfos }] = await Promise.all([tabsByActivity(endpoint), pipe.send('Target.getTargets')])
    const known = new Map(targetInfos.map((target) => [target.targetId, target]))
    for (const targetId of this.#ids.keys()) if (!known.has(targetId)) this.#ids.delete(targetId)
    return order.flatMap((targetId) => {
      const target = known.get(targetId)
      return target ? [{ id: this.#idOf(targetId), targetId, url: target.url, title: target.title }] : []
    })
  }

  /** The tab with this name, or the front tab. */
  async find(id: string | undefined): Promise<Tab> {
    const tabs = await this.list()
    const tab = id === undefined ? tabs[0] : tabs.find((each) => each.id === id)
    if (tab) return tab
    if (id === undefined) throw new BerthError('page_not_found')
    throw new BerthError('target_not_found', { reason: `tab_id: there is no tab ${id}.` })
  }

  async open(): Promise<Tab> {
    const pipe = await this.#browser.pipe()
    const { targetId } = await pipe.send('Target.createTarget', { url: 'about:blank' })
    return { id: this.#idOf(targetId), targetId, url: 'about:blank', title: '' }
  }

  async activate(id: string): Promise<void> {
    const { targetId } = await this.find(id)
    const pipe = await this.#browser.pipe()
    await pipe.send('Target.activateTarget', { targetId }).catch(throwClosed)
  }

  /** Resolves when the tab is in no list any more. */
  async close(id: string): Promise<void> {
    const { targetId } = await this.find(id)
    await closeTab(await this.#browser.pipe(), targetId).catch(throwClosed)
  }

  #idOf(targetId: string): string {
    const id = this.#ids.get(targetId) ?? `t${++this.#last}`
    this.#ids.set(targetId, id)
    return id
  }
}

function throwClosed(cause: unknown): never {
  throw new BerthError('target_not_found', { reason: 'tab_id: the tab has just closed.' }, { cause })
}
