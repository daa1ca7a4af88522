import { CdpClient } from '../../../e2e/testing/cdp.ts'
import type { Service } from '../../services/service.ts'
import type { BenchContext } from '../measurement.ts'

export interface OpenPage {
  readonly service: Service
  readonly client: CdpClient
  /** The CDP session of the page. */
  readonly page: string
}

/** Runs `work` with a page in a new headless session of every service, all open at once. */
export async function withPages(
  { services }: BenchContext,
  url: string,
  work: (pages: readonly OpenPage[]) => Promise<void>,
): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const open: OpenPage[] = []
  for (const service of services) {
    const session = await service.create('headless')
    stack.defer(() => session.end())
    const client = await CdpClient.open(session.cdpUrl)
    stack.defer(() => client.close())
    open.push({ service, client, page: await client.openPage(url) })
  }
  await work(open)
}

export async function timeOf(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

/** Repeats `work` with every page and returns the times. Alternates pages, so that noise affects all of them. */
export async function timeInterleaved(
  pages: readonly OpenPage[],
  { turns, perTurn }: { readonly turns: number; readonly perTurn: number },
  work: (page: OpenPage) => Promise<unknown>,
): Promise<ReadonlyMap<OpenPage, readonly number[]>> {
  const times = new Map(pages.map((page) => [page, [] as number[]]))
  // The first call loads code and opens connections.
  for (const page of pages) await work(page)
  for (let turn = 0; turn < turns; turn += 1) {
    for (const [page, own] of times) {
      for (let count = 0; count < perTurn; count += 1) own.push(await timeOf(() => work(page)))
    }
  }
  return times
}
