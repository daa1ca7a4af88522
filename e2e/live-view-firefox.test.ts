import assert from 'node:assert/strict'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { launch } from 'puppeteer-core'
import { deepOnly } from './fault/testing/deep.ts'
import { Berth } from './testing/berth.ts'
import {
  becomesTrue,
  hasNoted,
  hasValue,
  inViewer,
  isConnected,
  showsBackground,
  startWatchedSession,
} from './testing/live-view.ts'

if (!deepOnly.skip) {
  const berth = await Berth.start()
  after(() => berth[Symbol.asyncDispose]())
  for (const isHeadless of [false, true]) testInFirefox(berth, isHeadless)
} else test('the live view works in Firefox', deepOnly, () => {})

function testInFirefox(berth: Berth, isHeadless: boolean): void {
  test(`a viewer in Firefox sees and controls a ${isHeadless ? 'headless' : 'headful'} session`, async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'berth-firefox-'))
    const session = await startWatchedSession(berth, isHeadless)
    const client = await berth.client()
    const firefox = await launch({
      browser: 'firefox',
      executablePath: '/usr/bin/firefox-esr',
      headless: true,
      userDataDir: join(folder.path, 'profile'),
      env: { ...process.env, HOME: folder.path },
      extraPrefsFirefox: { 'dom.events.testing.asyncClipboard': true },
    })
    try {
      const page = await firefox.newPage()
      await page.setViewport({ width: 900, height: 700 })
      await page.goto(session.url)
      await becomesTrue(page, isConnected)
      await becomesTrue(page, showsBackground)
      const field = await inViewer(page, session, { x: 100, y: 100 })
      const outside = await inViewer(page, session, { x: 700, y: 420 })

      await page.mouse.click(field.x, field.y)
      await page.keyboard.type('one Ä €')
      await page.keyboard.press('Enter')
      await page.keyboard.type('two')
      await hasValue(session.remote, 'one Ä €\ntwo')
      await page.keyboard.down('Control')
      for (const key of ['a', 'x'] as const) await page.keyboard.press(key)
      await page.keyboard.up('Control')
      await hasValue(session.remote, '')
      await page.evaluate("navigator.clipboard.writeText('from Firefox')")
      await page.keyboard.down('Control')
      await page.keyboard.press('v')
      await page.keyboard.up('Control')
      await hasValue(session.remote, 'from Firefox')
      await page.mouse.move(outside.x, outside.y)
      await page.mouse.wheel({ deltaY: 120 })
      await hasNoted(session.remote, "event.type === 'wheel' && event.deltaY > 0")

      await client.browsers.deleteByID(session.id)
      await becomesTrue(page, "document.body.dataset.state === 'ended'")
      assert.equal((await fetch(session.url)).status, 404)
    } finally {
      await firefox.close()
      await session.disconnect()
    }
  })
}
