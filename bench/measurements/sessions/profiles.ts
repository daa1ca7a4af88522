import { setTimeout as delay } from 'node:timers/promises'
import { CdpClient } from '../../../e2e/testing/cdp.ts'
import type { Pages } from '../../../e2e/testing/pages.ts'
import { clients } from '../../clients.ts'
import { browserPage } from '../../pages.ts'
import { startBareChromium } from '../../services/bare-chromium.ts'
import { createSession, startReadyBerth } from '../../services/berth.ts'
import type { BenchSession } from '../../services/service.ts'
import type { BenchContext } from '../measurement.ts'

export const profileName = 'headless with a profile of 5 MiB: first CDP answer'

const reserveSizes = { 'headless-profile': 3 }
const quietMilliseconds = 1_000
/** Node.js runs the compiled code of a create after about as many, so these are not counted. */
const warmUps = 10

/** Random, so that it cannot be compressed. */
const fill = `new Promise((done, fail) => {
  const open = indexedDB.open('state', 1)
  open.onupgradeneeded = () => open.result.createObjectStore('parts')
  open.onerror = () => fail(open.error)
  open.onsuccess = () => {
    const transaction = open.result.transaction('parts', 'readwrite', { durability: 'strict' })
    for (let part = 0; part < 80; part += 1) {
      transaction.objectStore('parts').put(crypto.getRandomValues(new Uint8Array(65536)), part)
    }
    transaction.oncomplete = () => done(true)
  }
})`

/** Measures creates with a profile, beside bare Chromiums that start with a copy of the same state. */
export async function measureProfiles({ pages, figures, rounds }: BenchContext): Promise<void> {
  await using bare = await startBareChromium()
  await using berth = await startReadyBerth(pages.allowed, reserveSizes)
  const client = await berth.berth.client()
  const { id } = await client.profiles.create({})
  const first = await createSession(berth.berth, 'headless', { profile: { id, save_changes: true } })
  await fillState(first.cdpUrl, pages)
  await first.end()
  const state = await bare.makeState((cdpUrl) => fillState(cdpUrl, pages))
  const own: number[] = []
  const direct: number[] = []
  while (own.length < warmUps + rounds) {
    await berth.filled()
    await delay(quietMilliseconds)
    own.push(await timeToAnswer(() => createSession(berth.berth, 'headless', { profile: { id } })))
    if (own.length <= warmUps) continue
    const start = await bare.prepare(state)
    await delay(quietMilliseconds)
    direct.push(await timeToAnswer(start))
  }
  figures.add(bare.name, profileName, 'ms', direct)
  figures.add(berth.name, profileName, 'ms', own.slice(warmUps))
}

async function timeToAnswer(start: () => Promise<BenchSession>): Promise<number> {
  const begin = performance.now()
  const session = await start()
  const connection = await clients['raw CDP'](session.cdpUrl)
  const milliseconds = performance.now() - begin
  await connection.close()
  await session.end()
  return milliseconds
}

async function fillState(cdpUrl: string, pages: Pages): Promise<void> {
  const client = await CdpClient.open(cdpUrl)
  await client.openPage(browserPage(pages))
  await client.evaluate(await client.attachToPage((url) => url === browserPage(pages)), fill)
  await client.close()
}
