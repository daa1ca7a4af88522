import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { rounds } from './fault/testing/deep.ts'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { endlessScript, startPages } from './testing/pages.ts'
import { within } from './testing/within.ts'

test('pings are answered while a tab is busy, and quiet clients stay connected (case 5)', async () => {
  await using pages = await startPages()
  await using berth = await Berth.borrow()
  const client = await berth.client()
  const { cdp_ws_url } = await client.browsers.create({ headless: true, timeout_seconds: 300 })

  // The long form lasts until every keep-alive of berth is due, the short one as long as the tab is busy.
  const seconds = rounds({ short: 10, deep: 75 })
  const pinger = await CdpClient.open(cdp_ws_url)
  const quiet = await CdpClient.open(cdp_ws_url)
  const silent = await CdpClient.open(cdp_ws_url, { autoPong: false })
  const page = await pinger.openPage(pages.url)
  const isLoaded = async () => (await pinger.evaluate(page, `location.href + document.title`)) === `${pages.url}/Home`
  await until('the page', isLoaded, { limitSeconds: 60 })
  pinger.socket.send(
    JSON.stringify({
      id: 9_999_999,
      sessionId: page,
      method: 'Runtime.evaluate',
      params: { expression: endlessScript },
    }),
  )

  for (let round = 0; round < seconds / 5; round++) {
    const payload = randomBytes(4)
    const pong = within(60_000, once(pinger.socket, 'pong'))
    pinger.socket.ping(payload)
    assert.deepEqual((await pong)[0], payload)
    assert.ok(await within(60_000, silent.send('Browser.getVersion')))
    await delay(5_000)
  }

  assert.ok(await within(60_000, quiet.send('Browser.getVersion')))
  for (const { socket } of [pinger, quiet, silent]) socket.terminate()
})
