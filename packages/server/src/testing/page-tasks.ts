import type { Page } from 'playwright-core'

interface TraceEvent {
  readonly name: string
  readonly pid: number
  readonly tid: number
  /** Processor time in microseconds, however busy the machine is. */
  readonly tdur?: number
  readonly args: { readonly name?: string }
}

/** The processor time, in milliseconds, of each task of the page's main thread during `act`. */
export async function tasksOf(page: Page, act: () => Promise<void>): Promise<readonly number[]> {
  const cdp = await page.context().newCDPSession(page)
  const events: TraceEvent[] = []
  cdp.on('Tracing.dataCollected', ({ value }) => {
    events.push(...(value as unknown as TraceEvent[]))
  })
  await cdp.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: ['toplevel', '__metadata'] },
  })
  await act()
  const complete = new Promise((resolve) => cdp.once('Tracing.tracingComplete', resolve))
  await cdp.send('Tracing.end')
  await complete
  await cdp.detach()
  const threadOf = ({ pid, tid }: TraceEvent) => `${pid}:${tid}`
  const isMain = ({ name, args }: TraceEvent) => name === 'thread_name' && args.name === 'CrRendererMain'
  const mains = new Set(events.filter(isMain).map(threadOf))
  return events.flatMap((event) =>
    event.name.endsWith('RunTask') && event.tdur !== undefined && mains.has(threadOf(event)) ? [event.tdur / 1000] : [],
  )
}
