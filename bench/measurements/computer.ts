import { CdpClient } from '../../e2e/testing/cdp.ts'
import { browserPage } from '../pages.ts'
import type { BenchSession, Service, Shape } from '../services/service.ts'
import { timeOf } from './in-session.ts'
import type { BenchContext } from './measurement.ts'

export const screenshotName = (shape: Shape) => `picture of the screen, ${shape}, 1920x1080`
const keyName = (shape: Shape) => `press of a key, ${shape}`

/** The two operations without deliberate delays, unlike mouse movements. */
interface Hands {
  takePicture(): Promise<unknown>
  pressKey(): Promise<unknown>
}

/** Compares computer controls with the same operations over CDP in a bare browser. */
export async function measureComputer(context: BenchContext): Promise<void> {
  for (const shape of ['headless', 'headful'] as const) {
    await using stack = new AsyncDisposableStack()
    const hands = new Map<Service, Hands>()
    for (const service of context.services) {
      const session = await service.create(shape)
      stack.defer(() => session.end())
      const client = await CdpClient.open(session.cdpUrl)
      stack.defer(() => client.close())
      hands.set(service, await handsOf(session, client, browserPage(context.pages)))
    }
    for (const { takePicture, pressKey } of hands.values()) {
      // The first call loads code.
      await takePicture()
      await pressKey()
    }
    const times = new Map(
      [...hands.keys()].map((service) => [service, { pictures: [] as number[], keys: [] as number[] }]),
    )
    for (let round = 0; round < context.rounds; round += 1) {
      for (const [service, { takePicture, pressKey }] of hands) {
        times.get(service)?.pictures.push(await timeOf(takePicture))
        times.get(service)?.keys.push(await timeOf(pressKey))
      }
    }
    for (const [service, { pictures, keys }] of times) {
      context.figures.add(service.name, screenshotName(shape), 'ms', pictures)
      context.figures.add(service.name, keyName(shape), 'ms', keys)
    }
  }
}

async function handsOf({ read }: BenchSession, client: CdpClient, url: string): Promise<Hands> {
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
    return { takePicture: () => post('screenshot', {}), pressKey: () => post('press_key', { keys: ['a'] }) }
  }
  const key = { key: 'a', code: 'KeyA', windowsVirtualKeyCode: 65 }
  return {
    takePicture: () => client.send('Page.captureScreenshot', { format: 'png' }, page),
    pressKey: async () => {
      await client.send('Input.dispatchKeyEvent', { type: 'keyDown', text: 'a', ...key }, page)
      await client.send('Input.dispatchKeyEvent', { type: 'keyUp', ...key }, page)
    },
  }
}
