import { Berth } from '../../../e2e/testing/berth.ts'
import { openBerthTools, openDevtoolsTools, openPlaywrightTools, type ToolHost } from '../../mcp/hosts.ts'
import { pageOf, type Step, type Task, tasks } from '../../mcp/tasks.ts'
import type { BenchContext } from '../measurement.ts'

export const mcpServers = ['berth', '@playwright/mcp', 'chrome-devtools-mcp'] as const
export type McpServer = (typeof mcpServers)[number]

export const charactersPerToken = 4
export const clickName = 'mcp: click'
export const snapshotName = 'mcp: snapshot of 5,000 elements'
const taskLimitMilliseconds = 20_000

type McpFigure = 'solved' | 'calls' | 'tokens' | 'time'

export function mcpName(server: McpServer, figure: McpFigure): string {
  return `mcp, ${tasks.length} tasks, ${server}: ${figure}`
}

/** Solves the same tasks with the tools of three servers, by a scripted client in place of a model. */
export async function measureMcp({ pages, figures, rounds }: BenchContext): Promise<void> {
  for (const [index, task] of tasks.entries()) pages.serve(`/mcp/${index}`, pageOf(task))
  await using berth = await Berth.start({ environment: { BERTH_EGRESS_ALLOW: pages.allowed }, isOwnGroup: true })
  const client = await berth.client()
  const create = () => client.browsers.create({ headless: true, timeout_seconds: 600 })
  for (const name of mcpServers) {
    const session = await create()
    const host = await openTools(name, berth, session)
    const times: number[] = []
    const unsolved: string[] = []
    for (const [index, task] of tasks.entries()) {
      const start = performance.now()
      const isSolved = await solve(host, task, `${pages.url}/mcp/${index}`).then(
        async (read) =>
          task.readsOnly
            ? read
            : (await client.browsers.playwright.execute(session.session_id, { code: 'return page.title()' })).result ===
              'solved',
        () => false,
      )
      times.push(performance.now() - start)
      if (!isSolved) unsolved.push(task.name)
    }
    if (unsolved.length > 0) figures.notes.push(`${name} did not solve: ${unsolved.join(', ')}.`)
    figures.add('berth', mcpName(name, 'solved'), 'tasks', [tasks.length - unsolved.length])
    figures.add('berth', mcpName(name, 'calls'), 'calls', [host.calls])
    figures.add('berth', mcpName(name, 'tokens'), 'tokens', [Math.round(host.characters / charactersPerToken)])
    figures.add('berth', mcpName(name, 'time'), 'ms', times)
    if (name === 'berth') await measureSpeed({ pages, figures, rounds }, host)
    await host.close()
    await client.browsers.deleteByID(session.session_id)
  }
}

function openTools(
  name: McpServer,
  berth: Berth,
  session: { session_id: string; cdp_ws_url: string },
): Promise<ToolHost> {
  if (name === 'berth') return openBerthTools(berth, session.session_id)
  return name === '@playwright/mcp' ? openPlaywrightTools(session.cdp_ws_url) : openDevtoolsTools(session.cdp_ws_url)
}

/** Resolves with whether all expected texts were found. */
async function solve(host: ToolHost, { steps }: Task, url: string): Promise<boolean> {
  const client = new ScriptedClient(host, performance.now() + taskLimitMilliseconds)
  await client.go(url)
  let isRead = true
  for (const step of steps) isRead = (await client.do(step)) && isRead
  return isRead
}

/** Takes a snapshot only if it does not know an element yet, like a careful model. */
class ScriptedClient {
  readonly #host: ToolHost
  readonly #end: number
  /** The newest first. */
  readonly #seen: string[] = []
  #hasLooked = false

  constructor(host: ToolHost, end: number) {
    this.#host = host
    this.#end = end
  }

  async go(url: string): Promise<void> {
    this.#seen.unshift(await this.#host.call(this.#host.tools.navigate(url)))
  }

  async do(step: Step): Promise<boolean> {
    const { tools } = this.#host
    switch (step[0]) {
      case 'click':
        await this.#act(tools.click(await this.#find(step[1], step[2]), step[2]))
        return true
      case 'type':
        await this.#act(tools.type(await this.#find(step[1], step[2]), step[2], step[3]))
        return true
      case 'select':
        await this.#act(tools.select(await this.#find('combobox', step[1]), step[1], step[2]))
        return true
      case 'press':
        await this.#act(tools.press(step[1]))
        return true
      case 'wait':
        await this.#act(tools.wait(step[1]))
        return true
      case 'read':
        return this.#seen.some((text) => text.includes(step[1])) || (await this.#look()).includes(step[1])
    }
  }

  async #act(call: Parameters<ToolHost['call']>[0]): Promise<void> {
    this.#seen.unshift(await this.#host.call(call))
  }

  async #find(kind: string, name: string): Promise<string> {
    for (;;) {
      for (const text of this.#seen) {
        const ref = this.#host.tools.find(text, kind, name)
        if (ref !== undefined) return ref
      }
      if (performance.now() > this.#end) throw new Error(`there is no ${kind} ${name}`)
      await this.#look()
    }
  }

  async #look(): Promise<string> {
    const text = await this.#host.call(this.#host.tools.look(this.#hasLooked))
    this.#hasLooked = true
    this.#seen.unshift(text)
    return text
  }
}

/** A click, and a snapshot of a large page. */
async function measureSpeed(
  { pages, figures, rounds }: Pick<BenchContext, 'pages' | 'figures' | 'rounds'>,
  host: ToolHost,
): Promise<void> {
  const items = Array.from(
    { length: 1000 },
    (_none, index) =>
      `<article><h3>Item ${index}</h3><p>Text</p><a href="/${index}">Link</a><button>Buy ${index}</button></article>`,
  )
  pages.serve('/mcp/large', `<!doctype html><title>Large</title><main>${items.join('')}</main>`)
  const { tools } = host
  await host.call(tools.navigate(`${pages.url}/mcp/large`))
  const snapshots: number[] = []
  const clicks: number[] = []
  for (let turn = 0; turn < rounds; turn += 1) {
    const start = performance.now()
    const text = await host.call({ tool: 'snapshot', args: { ...tools.look(false).args, max_chars: 200_000 } })
    snapshots.push(performance.now() - start)
    const ref = tools.find(text, 'button', 'Buy 3') ?? ''
    const begin = performance.now()
    await host.call(tools.click(ref, 'Buy 3'))
    clicks.push(performance.now() - begin)
  }
  figures.add('berth', snapshotName, 'ms', snapshots)
  figures.add('berth', clickName, 'ms', clicks)
}
