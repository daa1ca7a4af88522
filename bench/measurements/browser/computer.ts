import { CdpClient } from '../../../e2e/testing/cdp.ts'
import { browserPage } from '../../pages.ts'
import type { BenchSession, Service, Shape } from '../../services/service.ts'
import type { BenchContext } from '../measurement.ts'
import { timeOf } from './in-session.ts'

export const screenshotName = (shape: Shape) => `picture of the screen, ${shape}, 1920x1080`
const keyName = (shape: Shape) => `press of a key, ${shape}`

/** The two operations without deliberate delays, unlike mouse movements. */
interface Controls {
  takeScreenshot(): Promise<unknown>
  pressKey(): Promise<unknown>
}

/** Compares computer controls with the same operations over CDP in a bare browser. */
export async function measureComputer(context: BenchContext): Promise<void> {
  for (const shape of ['headless', 'headful'] as const) {
    await using stack = new AsyncDisposableStack()
    const controls = new Map<Service, Controls>()
    for (const service of context.services) {
      const session = await service.create(shape)
      stack.defer(() => session.end())
      const client = await CdpClient.open(session.cdpUrl)
      stack.defer(() => client.close())
      controls.set(service, await controlsOf(session, client, browserPage(context.pages)))
    }
    for (const { takeScreenshot, pressKey } of controls.values()) {
      // The first call loads code.
      await takeScreenshot()
      await pressKey()
    }
    const times = new Map(
      [...controls.keys()].map((service) => [service, { pictures: [] as number[], keys: [] as number[] }]),
    )
    for (let round = 0; round < context.rounds; round += 1) {
      for (const [service, { takeScreenshot, pressKey }] of controls) {
        times.get(service)?.pictures.push(await timeOf(takeScreenshot))
        times.get(service)?.keys.push(await timeOf(pressKey))
      }
    }
    for (const [service, { pictures, keys }] of times) {
      context.figures.add(service.name, screenshotName(shape), 'ms', pictures)
      context.figures.add(service.name, keyName(shape), 'ms', keys)
    }
  }
}

async function controlsOf({ read }: BenchSession, client: CdpClient, url: string): Promise<Controls> {
  const page = await client.openPage(url)
  if (read) {
    const post = async (name: string, body: object) => {
      const headers = { 'content-type': 'application/json', ...read.headers }
      const answer = await fetch(`${read.url}/computer/${name}`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      if (!answer.ok) throw new Error(`${name} was answered with ${answer.status}: ${await answer.text()}`)
      await answer.arrayBuffer()
    }
    return { takeScreenshot: () => post('screenshot', {}), pressKey: () => post('press_key', { keys: ['a'] }) }
  }
  const key = { key: 'a', code: 'KeyA', windowsVirtualKeyCode: 65 }
  return {
    takeScreenshot: () => client.send('Page.captureScreenshot', { format: 'png' }, page),
    pressKey: async () => {
      await client.send('Input.dispatchKeyEvent', { type: 'keyDown', text: 'a', ...key }, page)
      await client.send('Input.dispatchKeyEvent', { type: 'keyUp', ...key }, page)
    },
  }
}
