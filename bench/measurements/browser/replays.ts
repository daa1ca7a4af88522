import { setTimeout as delay } from 'node:timers/promises'
import { CdpClient } from '../../../e2e/testing/cdp.ts'
import { differenceByPart, memoryByPart, type PartSums, processorTimeDuring } from '../../processes.ts'
import { type BenchSession, recorderPart, type Service, type Shape } from '../../services/service.ts'
import type { BenchContext } from '../measurement.ts'

/** The maximum frame rate for a session without a GPU. */
const framesPerSecond = 20
const settleMilliseconds = 3_000
const what = `recording of 1920x1080 at ${framesPerSecond} frames`

/** Text that moves with every frame, ten times a second, or not at all. */
const recordedPages = {
  moving: pageWith('requestAnimationFrame(move)'),
  'ten changes a second': pageWith('setTimeout(move, 100)'),
  still: pageWith(''),
} as const
type Recorded = keyof typeof recordedPages

/** Of all processes including the browser: a headless one draws its pages for the recording. */
export const recordingTimeName = (shape: Shape, page: Recorded = 'moving') =>
  `1 s of a ${what}, ${shape}${page === 'moving' ? '' : `, ${page}`}`
/** Of the encoder of a second recording beside a first one, because encoders share libraries. */
export const recordingMemoryName = (shape: Shape) => `memory of a ${what}, ${shape}`

function pageWith(next: string): string {
  return `<!doctype html><body style="font:16px sans-serif">${'<p>Some text that moves.</p>'.repeat(400)}<script>
    let step = 0
    const move = () => { scrollTo(0, (step += 4) % 4000); ${next} }
    move()
  </script>`
}

/** Measures what a recording costs beyond the same session without one. */
export async function measureReplays(context: BenchContext): Promise<void> {
  for (const [page, html] of Object.entries(recordedPages)) context.pages.serve(pathOf(page), html)
  for (const service of context.services) {
    for (const shape of ['headful', 'headless'] as const) await measureShape(context, service, shape)
  }
}

async function measureShape({ pages, figures, idleSeconds }: BenchContext, service: Service, shape: Shape) {
  for (const page of Object.keys(recordedPages) as Recorded[]) {
    await using stack = new AsyncDisposableStack()
    const session = await service.create(shape)
    stack.defer(() => session.end())
    if (!session.read) return // The service has no API, so it records nothing.
    const client = await CdpClient.open(session.cdpUrl)
    stack.defer(() => client.close())
    await client.openPage(`${pages.url}${pathOf(page)}`)
    await delay(settleMilliseconds)
    const without = await timeOfSecond(service, idleSeconds)
    await startRecording(session.read)
    await delay(settleMilliseconds)
    const more = differenceByPart(without, await timeOfSecond(service, idleSeconds))
    const name = recordingTimeName(shape, page)
    figures.add(service.name, name, 'ms of CPU', [more.values().reduce((sum, value) => sum + value, 0)])
    if (page !== 'moving') continue
    for (const [part, value] of more) figures.add(service.name, `${name}: ${part}`, 'ms of CPU', [value])
    const memoryOfOne = await memoryByPart(await service.processes())
    await startRecording(session.read)
    await delay(settleMilliseconds)
    const memory = differenceByPart(memoryOfOne, await memoryByPart(await service.processes()))
    figures.add(service.name, recordingMemoryName(shape), 'MiB', [memory.get(recorderPart) ?? Number.NaN])
  }
}

const pathOf = (page: string) => `/recorded/${page.replaceAll(' ', '-')}`

async function timeOfSecond(service: Service, seconds: number): Promise<PartSums> {
  const { used } = await processorTimeDuring(service, () => delay(seconds * 1000))
  return new Map([...used].map(([part, value]) => [part, value / seconds]))
}

async function startRecording({ url, headers }: NonNullable<BenchSession['read']>): Promise<void> {
  const response = await fetch(`${url}/replays`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ framerate: framesPerSecond }),
  })
  if (!response.ok) throw new Error(`the recording did not start: ${response.status} ${await response.text()}`)
}
