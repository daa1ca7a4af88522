import type { BenchContext } from '../measurement.ts'
import { type OpenPage, timeInterleaved, withPages } from './in-session.ts'

const mebibyte = 1024 * 1024
export const messageDirections = ['to the browser', 'from the browser'] as const
type Direction = (typeof messageDirections)[number]

export function messageName(mebibytes: number, direction: Direction): string {
  return `message of ${mebibytes} MiB ${direction}`
}

/** Measures long commands and long responses. The rate includes the work of browser and client. */
export async function measureMessages(context: BenchContext): Promise<void> {
  await withPages(context, 'about:blank', async (pages) => {
    for (const mebibytes of [1, 10]) {
      for (const direction of messageDirections) await measureOne(context, pages, mebibytes, direction)
    }
  })
}

async function measureOne(
  { figures, rounds }: BenchContext,
  pages: readonly OpenPage[],
  mebibytes: number,
  direction: Direction,
): Promise<void> {
  const length = mebibytes * mebibyte
  const expression = direction === 'to the browser' ? `'${'x'.repeat(length)}'.length` : `'x'.repeat(${length})`
  const times = await timeInterleaved(pages, { turns: rounds, perTurn: 1 }, ({ client, page }) =>
    client.send('Runtime.evaluate', { expression, returnByValue: true }, page),
  )
  for (const [{ service }, samples] of times) {
    const rates = samples.map((milliseconds) => (mebibytes / milliseconds) * 1000)
    figures.add(service.name, messageName(mebibytes, direction), 'MiB/s', rates)
  }
}
