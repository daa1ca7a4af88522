import type { BenchContext } from '../measurement.ts'
import { timeInterleaved, withPages } from './in-session.ts'

export const evaluateName = 'Runtime.evaluate round trip'
const perRound = 100

/** Measures the shortest possible command and response, which shows the cost of the connection. */
export async function measureEvaluate(context: BenchContext): Promise<void> {
  await withPages(context, 'about:blank', async (pages) => {
    const times = await timeInterleaved(pages, { turns: context.rounds, perTurn: perRound }, ({ client, page }) =>
      client.send('Runtime.evaluate', { expression: '1' }, page),
    )
    for (const [{ service }, samples] of times) context.figures.add(service.name, evaluateName, 'ms', samples)
  })
}
