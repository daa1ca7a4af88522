import { browserPage } from '../../pages.ts'
import type { BenchContext } from '../measurement.ts'
import { timeInterleaved, withPages } from './in-session.ts'

const size = { width: 1920, height: 1080, deviceScaleFactor: 1, mobile: false }

export async function measureScreenshots(context: BenchContext): Promise<void> {
  await withPages(context, browserPage(context.pages), async (pages) => {
    for (const { client, page } of pages) await client.send('Emulation.setDeviceMetricsOverride', size, page)
    const times = await timeInterleaved(pages, { turns: context.rounds, perTurn: 1 }, ({ client, page }) =>
      client.send('Page.captureScreenshot', { format: 'png' }, page),
    )
    for (const [{ service }, samples] of times) {
      context.figures.add(service.name, 'screenshot, PNG, 1920x1080', 'ms', samples)
    }
  })
}
