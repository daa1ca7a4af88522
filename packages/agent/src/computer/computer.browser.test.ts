import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { ComputerPage } from '../testing/computer-page.ts'
import { type StartedAgent, startAgent } from '../testing/start-agent.ts'

/** More different characters than a keyboard has spare keys, each twice, and characters that no keyboard has. */
const allText = `ÀÉÎ ß ĳŁ ${'日本語中文字漢かなカナ한글키보드입력'.repeat(2)} שלום مرحبا ру́сский a😀b👩‍👩‍👧c❤️🇩🇪 {}~|\\"'`

for (const headless of [false, true]) {
  describe(headless ? 'without a display' : 'with a display', () => {
    let agent: StartedAgent
    let page: ComputerPage

    before(async () => {
      agent = await startAgent({ headless })
      await agent.becomesReady()
      page = await ComputerPage.open(agent)
    })

    after(() => agent[Symbol.asyncDispose]())

    test('types every text unchanged', async () => {
      await page.operate('click_mouse', page.at(100, 60))

      const answer = await page.operate('type', { text: `${allText}\r\nend`, smooth: false })

      assert.equal(answer.status, 200)
      assert.equal(await page.becomes(`text.value.endsWith('end')`, 'text.value'), `${allText}\nend`)
    })

    test('of two callers that type at once, one waits for the other', async () => {
      await page.evaluate(`text.value = ''; text.focus(); log.length = 0`)

      const typed = ['aaaaaa', 'bbbbbb'].map((text) => page.operate('type', { text, smooth: false, delay: 5 }))
      await Promise.all(typed)

      assert.match(await page.becomes('text.value.length === 12', 'text.value'), /^(a{6}b{6}|b{6}a{6})$/)
    })

    test('a caller that disconnects leaves nothing pressed, and does not block the next', async () => {
      const leave = async (name: string, body: object, begun: string) => {
        const leaving = new AbortController()
        const answer = page.operate(name, body, leaving.signal)
        await page.becomes(`log.includes(${JSON.stringify(begun)})`, '0')
        leaving.abort()
        await assert.rejects(answer)
      }
      await page.evaluate('log.length = 0')

      await leave('press_key', { keys: ['a'], duration: 60_000, hold_keys: ['Ctrl'] }, 'keydown a')
      const keys = await page.takeLog('keyup Control')
      const [{ x, y }, end] = [page.at(300, 300), page.at(400, 400)]
      const drag = {
        path: [
          [x, y],
          [end.x, end.y],
        ],
        delay: 60_000,
      }
      await leave('drag_mouse', drag, 'mousedown 0')
      const buttons = await page.takeLog('click 0')
      await leave(
        'batch',
        {
          actions: [
            { type: 'press_key', press_key: { keys: ['b'] } },
            { type: 'sleep', sleep: { duration_ms: 30_000 } },
          ],
        },
        'keyup b',
      )
      const position = await page.operate('get_mouse_position')

      assert.deepEqual(
        keys.filter((entry) => entry.startsWith('keyup')),
        ['keyup a', 'keyup Control'],
      )
      assert.deepEqual(buttons, ['mousedown 0', 'mouseup 0', 'click 0'])
      assert.equal(position.status, 200)
    })

    test('a button stays down until it is released', async () => {
      await page.evaluate('log.length = 0')

      await page.operate('click_mouse', { ...page.at(600, 200), click_type: 'down' })
      await page.operate('move_mouse', { ...page.at(650, 220), smooth: false })
      const held = await page.takeLog('mousedown 0')
      await page.operate('click_mouse', { ...page.at(600, 200), click_type: 'up' })

      assert.deepEqual(held, ['mousedown 0'])
      assert.deepEqual(await page.takeLog('click 0'), ['mouseup 0', 'click 0'])
    })

    test('corrects its typos', async () => {
      await page.evaluate(`text.value = ''; text.focus(); log.length = 0`)
      const text = 'a quick fox'

      // Twice the cap.
      await page.operate('type', { text, typo_chance: 0.2 })

      assert.equal(await page.becomes(`text.value === ${JSON.stringify(text)}`, 'text.value'), text)
    })

    test('continues to work after a crash of the browser', async () => {
      const [pid = 0] = agent.children('chromium')
      process.kill(pid, 'SIGKILL')
      await page.client.closed
      page = await ComputerPage.open(agent)

      await page.operate('click_mouse', page.at(100, 60))
      const answer = await page.operate('type', { text: 'Ünd', smooth: false })

      assert.equal(answer.status, 200)
      assert.equal(await page.becomes('text.value.length === 3', 'text.value'), 'Ünd')
    })

    if (!headless) testDisplay(() => ({ agent, page }))
    else testDialogs(() => ({ agent, page }))
  })
}

function testDisplay(at: () => { agent: StartedAgent; page: ComputerPage }): void {
  test('types and presses the same with another keyboard layout, and with Caps Lock', async () => {
    const { agent, page } = at()
    const [windowManager = 0] = agent.children('openbox')
    const environment = readFileSync(`/proc/${windowManager}/environ`, 'utf8').split('\0')
    const display = environment.find((line) => line.startsWith('DISPLAY='))?.slice('DISPLAY='.length) ?? ''
    const beside = ['--target', `${windowManager}`, '--all', '--preserve-credentials']
    const change = (layout: string) => execFileSync('nsenter', [...beside, 'setxkbmap', '-display', display, layout])
    await page.evaluate('text.focus()')
    const typed = async (text: string) => {
      await page.evaluate(`text.value = ''`)
      await page.operate('type', { text: `${text}\n`, smooth: false })
      return page.becomes(`text.value.endsWith('\\n')`, 'text.value.trimEnd()')
    }

    for (const layout of ['ru', 'fr', 'us,ru']) {
      change(layout)
      assert.equal(await typed('az AZ яé12'), 'az AZ яé12', layout)
    }
    await page.operate('press_key', { keys: ['Caps_Lock'] })
    assert.equal(await typed('az AZ.'), 'az AZ.')
    await page.operate('press_key', { keys: ['Caps_Lock'] })
    change('us')
  })

  test('draws the pointer into screenshots, unless it is hidden', async () => {
    const { page } = at()
    const { x, y } = page.at(300, 300)
    const region = { x: x - 20, y: y - 20, width: 40, height: 40 }
    await page.operate('move_mouse', { ...page.at(300, 300), smooth: false })
    const picture = async () => (await page.operate('screenshot', { region })).body
    await page.operate('cursor', { hidden: true })

    const hidden = await picture()
    await page.operate('cursor', { hidden: false })
    let shown = await picture()
    // Chromium itself hides the pointer during typing until the pointer moves.
    while (shown.equals(hidden)) shown = await picture()
    await page.operate('cursor', { hidden: true })
    const hiddenAgain = await picture()
    await page.operate('cursor', { hidden: false })

    assert.deepEqual([shown.readUInt32BE(16), shown.readUInt32BE(20)], [40, 40])
    assert.deepEqual(hiddenAgain, hidden)
  })

  test('shows and operates menus, which are not part of a page', async () => {
    const { page } = at()
    const plain = (await page.operate('screenshot')).body.length
    /** Waits until screenshots show a menu, whose text takes two thousand bytes, or show none. */
    const menu = async (isOpen: boolean) => {
      for (;;) {
        const picture = (await page.operate('screenshot')).body
        if (picture.length > plain + 2000 === isOpen) return
      }
    }

    await page.operate('click_mouse', { ...page.at(300, 300), button: 'right' })
    await menu(true)
    await page.operate('press_key', { keys: ['Escape'] })
    await menu(false)
  })

  test('continues to work after a crash of the display', async () => {
    const { agent, page } = at()
    const [pid = 0] = agent.children('Xtigervnc')
    process.kill(pid, 'SIGKILL')
    await page.client.closed
    const next = await ComputerPage.open(agent)

    const picture = await next.operate('screenshot')

    assert.deepEqual([picture.body.readUInt32BE(16), picture.body.readUInt32BE(20)], [1280, 800])
  })
}

function testDialogs(at: () => { agent: StartedAgent; page: ComputerPage }): void {
  test('shows the dialogs of pages, and answers them by keys, text and clicks', async () => {
    const { page } = at()
    const ask = async (question: string) => {
      const shown = once(page.client.socket, 'message')
      await page.client.send('Page.enable', {}, page.session)
      const opening = page.client.nextEvent('Page.javascriptDialogOpening')
      const answer = page.evaluate(question)
      await shown
      await opening
      return { answer }
    }
    const plain = await page.operate('screenshot')

    const first = await ask(`confirm('Really?')`)
    const asked = await page.operate('screenshot')
    await page.operate('press_key', { keys: ['Return'] })
    const second = await ask(`confirm('Sure?')`)
    await page.operate('press_key', { keys: ['Escape'] })
    const third = await ask(`prompt('Name?', 'nobody')`)
    await page.operate('type', { text: 'Zoë 😀!', smooth: false })
    await page.operate('press_key', { keys: ['BackSpace', 'Return'] })
    const fourth = await ask(`confirm('Again?')`)
    // The position of Cancel in the picture: left of the button in the lower right corner of the dialog.
    await page.operate('click_mouse', { x: 640 + 224 - 24 - 84 - 8 - 40, y: 240 - 24 - 18 })

    assert.equal(await first.answer, true)
    assert.equal(await second.answer, false)
    assert.equal(await third.answer, 'Zoë 😀')
    assert.equal(await fourth.answer, false)
    assert.deepEqual([asked.body.readUInt32BE(16), asked.body.readUInt32BE(20)], [1280, 800])
    assert.notDeepEqual(asked.body, plain.body)
  })

  test('still detects dialogs after other parts of the agent have attached to the page and detached', async () => {
    const { agent, page } = at()
    await page.operate('screenshot')
    await page.client.send('Page.enable', {}, page.session)
    // A resize briefly attaches to every page.
    assert.equal((await agent.resize({ width: 1000, height: 700, refresh_rate: 60 })).status, 204)
    const opening = page.client.nextEvent('Page.javascriptDialogOpening')
    const answer = page.evaluate(`confirm('Still?')`)
    await opening

    await page.operate('press_key', { keys: ['Return'] })

    assert.equal(await answer, true)
    await agent.resize({ width: 1280, height: 800, refresh_rate: 60 })
  })

  test('acts in the page that was activated last', async () => {
    const { page } = at()
    const other = await page.client.newPage()
    await page.client.send('Page.bringToFront', {}, page.session)
    await page.evaluate(`text.value = ''; text.focus()`)

    await page.operate('type', { text: 'front', smooth: false })

    assert.equal(await page.becomes('text.value.length === 5', 'text.value'), 'front')
    assert.equal(await page.client.evaluate('document.visibilityState', other), 'hidden')
  })
}
