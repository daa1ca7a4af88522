import {
  defaultExecutor,
  type ExecutePlaywrightResult,
  type PlaywrightExecutor,
} from '@berth/contract/agent/operations/playwright-operations.ts'
import { BerthError } from '@berth/contract/errors.ts'
import type { Browser } from '../browser/browser.ts'
import { closeTab } from '../browser/targets/close-tab.ts'
import { Executor, type ExecutorOptions, type Run } from './executor.ts'

/** In addition to the default one. */
export const maxNamedExecutors = 8

interface ExecutorsOptions extends Omit<ExecutorOptions, 'hasOwnTab' | 'endpoint'> {
  readonly browser: Browser
}

/** The default executor, which works in the visible tab, and named executors with a tab of their own. */
export class Executors {
  readonly #options: ExecutorsOptions
  readonly #executors = new Map<string, Executor>()

  constructor(options: ExecutorsOptions) {
    this.#options = options
    this.#executors.set(defaultExecutor, this.#create(false))
  }

  /** Undefined if no further executor can be added. */
  run(name: string, run: Run): Promise<ExecutePlaywrightResult> | undefined {
    const executor = this.#executors.get(name) ?? this.#add(name)
    return executor?.run(run)
  }

  async list(): Promise<readonly PlaywrightExecutor[]> {
    const tabs = await this.#openTabs()
    return Array.from(this.#executors, ([name, { isBusy, createdAt, lastUsedAt, targetId }]) => {
      const url = targetId === undefined ? undefined : tabs.get(targetId)
      return {
        name,
        busy: isBusy,
        created_at: createdAt.toISOString(),
        last_used_at: lastUsedAt.toISOString(),
        ...(targetId !== undefined && { target_id: targetId }),
        ...(url !== undefined && { url }),
      }
    })
  }

  /** The default executor is recreated immediately and starts its process later. */
  async delete(name: string, closesTab: boolean): Promise<void> {
    const executor = this.#executors.get(name)
    if (!executor) throw new BerthError('executor_not_found', { name })
    if (name === defaultExecutor) return executor.stop('executor was restarted')
    this.#executors.delete(name)
    executor.stop('executor was deleted')
    const { targetId } = executor
    if (!closesTab || targetId === undefined) return
    await closeTab(await this.#options.browser.pipe(), targetId).catch(() => {}) // The tab was closed before.
  }

  #add(name: string): Executor | undefined {
    if (this.#executors.size > maxNamedExecutors) return undefined
    const executor = this.#create(true)
    this.#executors.set(name, executor)
    void this.#endWithBrowser(name, executor)
    return executor
  }

  /** An executor's tab ends with the browser, and so does the executor. */
  async #endWithBrowser(name: string, executor: Executor): Promise<void> {
    await (await this.#options.browser.endpoint().catch(() => undefined))?.ended
    if (this.#executors.get(name) !== executor) return
    this.#executors.delete(name)
    executor.stop('the browser has ended')
  }

  #create(hasOwnTab: boolean): Executor {
    const { browser, ...options } = this.#options
    return new Executor({ ...options, hasOwnTab, endpoint: () => browser.endpoint() })
  }

  async #openTabs(): Promise<ReadonlyMap<string, string>> {
    const pipe = await this.#options.browser.pipe()
    const { targetInfos } = await pipe.send('Target.getTargets')
    return new Map(targetInfos.map(({ targetId, url }) => [targetId, url]))
  }
}
