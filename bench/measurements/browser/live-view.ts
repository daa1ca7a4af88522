import { setTimeout as delay } from 'node:timers/promises'
import { type Browser, chromium, type Page } from 'playwright-core'
import { CdpClient } from '../../../e2e/testing/cdp.ts'
import { processorTimeDuring } from '../../processes.ts'
import type { BenchSession, Service, Shape } from '../../services/service.ts'
import type { BenchContext } from '../measurement.ts'
import { sumBeyondBrowser } from '../sessions/memory.ts'

const actions = ['click', 'key'] as const
type Action = (typeof actions)[number]

export const latencyName = (shape: Shape, action: Action) => `${action} in a viewer to its effect there, ${shape}`
export const stillName = (shape: Shape) => `10 s of a watched ${shape} session that stands still: beyond Chromium`
export const idleBytesName = (shape: Shape) => `received by a viewer in 10 s of a still page, ${shape}`

const settleMilliseconds = 3_000

/** Changes the colour of its centre with every click and key. */
const remotePage = `<!doctype html><body style="margin:0"><div id="box" style="position:fixed;inset:25%;background:rgb(0,0,200)"></div>
<script>
  let isLit = false
  const change = () => { isLit = !isLit; box.style.background = isLit ? 'rgb(0,200,0)' : 'rgb(0,0,200)' }
  addEventListener('mousedown', change)
  addEventListener('keydown', change)
</script>`

/** Runs in the viewer: milliseconds from an event until the picture of the box changes, beside the pointer. */
const watch = `(() => {
  const canvas = document.querySelector('canvas')
  const context = canvas.getContext('2d')
  const isLit = () => {
    const [, green, blue] = context.getImageData(canvas.width * 0.6, canvas.height * 0.65, 1, 1).data
    return green > blue
  }
  const wake = new MessageChannel()
  window.latency = (type) => new Promise((resolve, reject) => {
    const before = isLit()
    addEventListener(type, () => {
      const start = performance.now()
      wake.port1.onmessage = () => {
        const now = performance.now()
        if (isLit() !== before) return resolve(now - start)
        if (now - start > 10000) return reject(new Error('nothing has changed'))
        setTimeout(() => wake.port2.postMessage(0), 1)
      }
      wake.port2.postMessage(0)
    }, { capture: true, once: true })
    window.isReady = true
  })
})()`

/**
 * Measures how soon viewers see the effect of their input, and the cost of watching, beside noVNC with a bare VNC
 * server.
 */
export async function measureLiveView(context: BenchContext): Promise<void> {
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : []
  await using stack = new AsyncDisposableStack()
  const browser = await chromium.launch({ executablePath: '/usr/lib/chromium/chromium', args })
  stack.defer(() => browser.close())
  context.pages.serve('/live-view', remotePage)
  for (const shape of ['headful', 'headless'] as const) await measureShape(context, browser, shape)
}

interface Viewer {
  readonly service: Service
  readonly page: Page
  readonly receivedBytes: () => number
}

async function measureShape(
  { services, pages, figures, rounds, idleSeconds }: BenchContext,
  browser: Browser,
  shape: Shape,
) {
  await using stack = new AsyncDisposableStack()
  const viewers: Viewer[] = []
  for (const service of services) {
    const session = await service.create(shape)
    stack.defer(() => session.end())
    if (!session.liveView) continue
    const client = await CdpClient.open(session.cdpUrl)
    stack.defer(() => client.close())
    await client.openPage(`${pages.url}/live-view`)
    const viewer = await openViewer(browser, service, session.liveView)
    stack.defer(() => viewer.page.close())
    viewers.push(viewer)
  }
  const times = new Map(viewers.map((viewer) => [viewer, { click: [] as number[], key: [] as number[] }]))
  // The first round loads code, and a click focuses the page.
  for (const viewer of viewers) for (const action of actions) await latencyOf(viewer, action)
  for (let round = 0; round < 5 * rounds; round += 1) {
    for (const [viewer, own] of times) for (const action of actions) own[action].push(await latencyOf(viewer, action))
  }
  for (const [{ service }, own] of times) {
    for (const action of actions) figures.add(service.name, latencyName(shape, action), 'ms', own[action])
  }
  await delay(settleMilliseconds)
  for (const { service, receivedBytes } of viewers) {
    const before = receivedBytes()
    const { used } = await processorTimeDuring(service, () => delay(idleSeconds * 1000))
    const perTenSeconds = 10 / idleSeconds
    figures.add(service.name, stillName(shape), 'ms of CPU', [sumBeyondBrowser(used) * perTenSeconds])
    figures.add(service.name, idleBytesName(shape), 'bytes', [(receivedBytes() - before) * perTenSeconds])
  }
}

async function openViewer(
  browser: Browser,
  service: Service,
  liveView: NonNullable<BenchSession['liveView']>,
): Promise<Viewer> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 } })
  let received = 0
  page.on('websocket', (socket) =>
    socket.on('framereceived', ({ payload }) => {
      received += payload.length
    }),
  )
  await page.goto(await liveView())
  await page.locator('canvas').waitFor()
  while (!(await page.evaluate(showsBox))) await delay(100)
  await page.evaluate(watch)
  return { service, page, receivedBytes: () => received }
}

const showsBox = `(() => {
  const canvas = document.querySelector('canvas')
  if (!(canvas?.width > 1)) return false
  const [red, , blue] = canvas.getContext('2d').getImageData(canvas.width * 0.6, canvas.height * 0.65, 1, 1).data
  return red < 40 && blue > 150
})()`

async function latencyOf({ page }: Viewer, action: Action): Promise<number> {
  await page.evaluate('window.isReady = false')
  const latency = page.evaluate(`latency('${action === 'click' ? 'mousedown' : 'keydown'}')`)
  while (!(await page.evaluate('window.isReady'))) await delay(1)
  if (action === 'click') await page.mouse.click(640, 400)
  else await page.keyboard.press('a')
  return (await latency) as number
}
