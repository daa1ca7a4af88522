import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'
import type Kernel from '@onkernel/sdk'
import { APIError } from '@onkernel/sdk'
import { deepOnly } from './fault/testing/deep.ts'
import { Berth } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { startPages } from './testing/pages.ts'

const pages = await startPages()
/** Records every event of mouse, keyboard and editing. */
pages.serve(
  '/desk',
  `<!doctype html><meta charset="utf-8"><title>Desk</title><body style="margin:0">
  <textarea id="text" style="position:absolute;left:20px;top:20px;width:600px;height:120px"></textarea>
  <div id="box" style="position:absolute;left:20px;top:200px;width:200px;height:200px;overflow:scroll">
    <div style="width:9000px;height:9000px"></div></div>
  <p id="words" style="position:absolute;left:300px;top:200px;margin:0;font:20px monospace">double click</p>
  <script>
    globalThis.log = []
    const modifiers = (event) => ['ctrl', 'shift', 'alt', 'meta'].filter((name) => event[name + 'Key']).join('+')
    for (const name of ['keydown', 'keyup'])
      addEventListener(name, (event) => {
        log.push([name, event.key, modifiers(event)].filter(Boolean).join(' '))
        if (globalThis.isDeaf) event.preventDefault()
      }, true)
    for (const name of ['mousedown', 'mouseup', 'click', 'dblclick', 'contextmenu', 'auxclick', 'wheel'])
      addEventListener(name, (event) => log.push([name, event.button, event.detail, event.clientX, event.clientY, modifiers(event)]), true)
    globalThis.moves = 0
    addEventListener('mousemove', () => moves++, true)
  </script>`,
)
const berth = await Berth.borrow()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})

/** The official client's two routes: through the API, and directly to the session. */
const ways = {
  'over the API': await berth.client({ directly: '' }),
  directly: await berth.client({ directly: 'computer' }),
}

for (const [way, headless, isInShortForm] of [
  ['over the API', false, true],
  ['directly', true, true],
  ['directly', false, false],
  ['over the API', true, false],
] as const) {
  const client = ways[way]
  const options = { timeout: 60_000, ...(!isInShortForm && deepOnly) }
  suite(`computer controls ${way}, ${headless ? 'headless' : 'headful'}`, options, () => {
    let id = ''
    let cdp: CdpClient
    let page = ''
    let origin = { x: 0, y: 0 }

    before(async () => {
      const session = await client.browsers.create({
        headless,
        start_url: `${pages.url}/desk`,
        viewport: { width: 1024, height: 768 },
      })
      id = session.session_id
      cdp = await CdpClient.open(session.cdp_ws_url)
      // A create does not wait for its start page, and what is evaluated before it ends with the page.
      page = await cdp.attachToPage((url) => url.endsWith('/desk'))
      await becomes(`document.readyState === 'complete' && globalThis.log`)
      const [x, y] = (await evaluate('[screenX, screenY + outerHeight - innerHeight]')) as [number, number]
      origin = { x, y }
    })

    after(async () => {
      await cdp.close()
      await client.browsers.deleteByID(id)
    })

    const evaluate = (expression: string) => cdp.evaluate(page, expression)
    const at = (x: number, y: number) => ({ x: origin.x + x, y: origin.y + y })
    /** Resolves when the condition holds in the page. Input arrives some time after it was sent. */
    const becomes = (condition: string, value = '0') =>
      evaluate(`new Promise((resolve) => {
        const look = () => ((${condition}) ? resolve(${value}) : setTimeout(look, 5))
        look()
      })`)
    /** Returns the recorded events once there are this many. */
    const notes = (count: number) => becomes(`log.length >= ${count}`, 'log.splice(0)')

    test('key names press exactly their keys, and unknown names none (case 21)', async () => {
      await client.browsers.computer.clickMouse(id, at(100, 60))
      await evaluate('log.length = 0; isDeaf = true')

      for (const [name, key] of [
        ...['Return', 'Enter'].map((name) => [name, 'Enter']),
        ...['BackSpace', 'Backspace'].map((name) => [name, 'Backspace']),
        ...['Escape', 'Esc'].map((name) => [name, 'Escape']),
        ...[
          ['Tab', 'Tab'],
          ['space', ' '],
          ['Delete', 'Delete'],
          ['F5', 'F5'],
        ],
        ...['Page_Down', 'PageDown'].map((name) => [name, 'PageDown']),
        ...['Down', 'ArrowDown'].map((name) => [name, 'ArrowDown']),
      ] as const) {
        await client.browsers.computer.pressKey(id, { keys: [name as string] })
        assert.deepEqual(await notes(2), [`keydown ${key}`, `keyup ${key}`], name)
      }
      for (const name of ['Ctrl+a', 'Control_L+a']) {
        await client.browsers.computer.pressKey(id, { keys: [name] })
        assert.deepEqual(await notes(4), ['keydown Control ctrl', 'keydown a ctrl', 'keyup a ctrl', 'keyup Control'])
      }
      await client.browsers.computer.pressKey(id, { keys: ['ctrl+shift+e'] })
      assert.deepEqual(await notes(6), [
        ...['keydown Control ctrl', 'keydown Shift ctrl+shift', 'keydown E ctrl+shift'],
        ...['keyup E ctrl+shift', 'keyup Shift ctrl', 'keyup Control'],
      ])
      for (const [keys, told] of [
        [['NoSuchKey'], 'NoSuchKey'],
        [['a', 'NoSuchKey'], 'NoSuchKey'],
        [[], 'keys'],
        [[''], '""'],
      ] as const) {
        await refused(client.browsers.computer.pressKey(id, { keys: [...keys] }), 400, told)
      }
      await client.browsers.computer.pressKey(id, { keys: ['z'] })
      // Rejected input would appear before it.
      assert.deepEqual(await notes(2), ['keydown z', 'keyup z'])
      await evaluate('isDeaf = false')
    })

    test('several keys are tapped in order, or held down together for a while', async () => {
      await evaluate('log.length = 0; isDeaf = true')

      await client.browsers.computer.pressKey(id, { keys: ['a', 'b'] })
      const tapped = await notes(4)
      await client.browsers.computer.pressKey(id, { keys: ['a', 'b'], duration: 50, hold_keys: ['Shift'] })
      const held = await notes(6)

      assert.deepEqual(tapped, ['keydown a', 'keyup a', 'keydown b', 'keyup b'])
      assert.deepEqual(held, [
        ...['keydown Shift shift', 'keydown A shift', 'keydown B shift'],
        ...['keyup B shift', 'keyup A shift', 'keyup Shift'],
      ])
      await evaluate('isDeaf = false')
    })

    test('text arrives unchanged, in a human rhythm or at once', async () => {
      const text = 'Ünï ßÀÉ 日本 한글 שלום 😀👩‍👩‍👧❤️.\n\tTab'
      await evaluate(`text.value = ''; text.focus()`)
      // A page that prevents the key from moving the focus.
      await evaluate(`text.onkeydown = (event) => {
        if (event.key === 'Tab') { event.preventDefault(); text.setRangeText('\\t', text.value.length, text.value.length, 'end') }
      }`)

      await client.browsers.computer.typeText(id, { text, smooth: false } as Kernel.Browsers.ComputerTypeTextParams)
      const atOnce = await becomes(`text.value.endsWith('Tab')`, 'text.value')
      await evaluate(`text.value = ''`)
      const startedAt = performance.now()
      await client.browsers.computer.typeText(id, { text: 'Ça va. Oui' })
      const took = performance.now() - startedAt
      const likeAPerson = await becomes(`text.value.endsWith('Oui')`, 'text.value')
      await evaluate(`text.value = ''`)
      const delayedAt = performance.now()
      await client.browsers.computer.typeText(id, { text: 'later', delay: 300 })
      const tookWithDelay = performance.now() - delayedAt

      assert.equal(atOnce, text)
      assert.equal(likeAPerson, 'Ça va. Oui')
      assert.ok(took > 500 && took < 60_000, `${took} ms`)
      assert.equal(await becomes(`text.value.endsWith('r')`, 'text.value'), 'later')
      assert.ok(tookWithDelay > 4 * 300 && tookWithDelay < 60_000, `${tookWithDelay} ms`)
    })

    test('clicks have their position, button, count and modifier keys', async () => {
      const point = at(400, 500)
      await evaluate('log.length = 0; moves = 0')

      await client.browsers.computer.clickMouse(id, point)
      const single = await notes(3)
      const moves = await evaluate('moves')
      await client.browsers.computer.clickMouse(id, { ...at(360, 212), num_clicks: 2 })
      const double = (await notes(7)) as [string, number, number][]
      const selected = await evaluate('String(getSelection()).trim()')
      await client.browsers.computer.clickMouse(id, { ...at(500, 550), hold_keys: ['Ctrl', 'Shift'], num_clicks: 0 })
      const held = (await notes(7)) as (string | unknown[])[]

      assert.deepEqual(single, [
        ['mousedown', 0, 1, 400, 500, ''],
        ['mouseup', 0, 1, 400, 500, ''],
        ['click', 0, 1, 400, 500, ''],
      ])
      assert.ok((moves as number) > 5, `${moves} moves`)
      assert.deepEqual(
        double.map(([name, , count]) => `${name} ${count}`),
        [...['mousedown 1', 'mouseup 1', 'click 1', 'mousedown 2', 'mouseup 2', 'click 2', 'dblclick 2']],
      )
      assert.equal(selected, 'double')
      assert.deepEqual(held, [
        ...['keydown Control ctrl', 'keydown Shift ctrl+shift', ['mousedown', 0, 1, 500, 550, 'ctrl+shift']],
        ...[
          ['mouseup', 0, 1, 500, 550, 'ctrl+shift'],
          ['click', 0, 1, 500, 550, 'ctrl+shift'],
        ],
        ...['keyup Shift ctrl', 'keyup Control'],
      ])
    })

    test('moves, scrolls by ticks, and drags along a path', async () => {
      await client.browsers.computer.moveMouse(id, { ...at(10, 600), smooth: false })
      assert.deepEqual(await client.browsers.computer.getMousePosition(id), at(10, 600))
      await client.browsers.computer.moveMouse(id, { ...at(600, 600), duration_ms: 60 })
      assert.deepEqual(await client.browsers.computer.getMousePosition(id), at(600, 600))

      await client.browsers.computer.scroll(id, { ...at(100, 300), delta_y: 3, delta_x: 2 })
      await becomes('box.scrollTop >= 240 && box.scrollLeft >= 160')
      const down = (await evaluate('[box.scrollTop, box.scrollLeft]')) as [number, number]
      await client.browsers.computer.scroll(id, { ...at(100, 300), delta_y: -3, delta_x: -2 })
      await becomes('box.scrollTop === 0 && box.scrollLeft === 0')
      assert.ok(down[0] > down[1])
      await refused(client.browsers.computer.scroll(id, at(100, 300)), 400, 'delta_x')

      await evaluate('getSelection().removeAllRanges(); log.length = 0')
      const [from, to] = [at(301, 212), at(441, 212)]
      const path = [from, at(400, 214), to].map(({ x, y }) => [x, y])
      await client.browsers.computer.dragMouse(id, {
        path,
        smooth: false,
        steps_per_segment: 4,
        step_delay_ms: 5,
        delay: 20,
      })
      await becomes(`log.some(([name]) => name === 'mouseup')`)
      assert.equal(await evaluate('String(getSelection()).trim()'), 'double click')
      await refused(client.browsers.computer.dragMouse(id, { path: [path[0] as number[]] }), 400, 'path')
    })

    test('the page and the API share one clipboard', async () => {
      const text = 'von außen: 日本 😀\nzwei'
      await evaluate(`text.onkeydown = null; text.value = ''; text.focus()`)

      await client.browsers.computer.writeClipboard(id, { text })
      await client.browsers.computer.pressKey(id, { keys: ['Ctrl+v'] })
      assert.equal(await becomes(`text.value !== ''`, 'text.value'), text)
      assert.deepEqual(await client.browsers.computer.readClipboard(id), { text })

      await evaluate(`text.value = 'from the page é'; text.select(); globalThis.hasCopied = false
        addEventListener('copy', () => setTimeout(() => { hasCopied = true }), { once: true })`)
      await client.browsers.computer.pressKey(id, { keys: ['Ctrl+c'] })
      await becomes('hasCopied')
      assert.deepEqual(await client.browsers.computer.readClipboard(id), { text: 'from the page é' })

      const long = 'ü'.repeat(600_000)
      await client.browsers.computer.writeClipboard(id, { text: long })
      assert.ok((await client.browsers.computer.readClipboard(id)).text === long)
      await client.browsers.computer.writeClipboard(id, { text: '' })
      assert.deepEqual(await client.browsers.computer.readClipboard(id), { text: '' })
    })

    test('screenshots are PNG, of the whole screen or a part of it', async () => {
      const sizeOf = async (answer: Response) => {
        assert.equal(answer.headers.get('content-type'), 'image/png')
        const bytes = Buffer.from(await answer.arrayBuffer())
        return [bytes.subarray(1, 4).toString(), bytes.readUInt32BE(16), bytes.readUInt32BE(20)]
      }
      const region = { x: 10, y: 20, width: 300, height: 200 }

      assert.deepEqual(await sizeOf(await client.browsers.computer.captureScreenshot(id)), ['PNG', 1024, 768])
      assert.deepEqual(await sizeOf(await client.browsers.computer.captureScreenshot(id, { region })), [
        'PNG',
        300,
        200,
      ])
      for (const wrong of [{ width: 0 }, { height: -1 }, { x: -1 }, { x: 725 }, { height: 749 }])
        await refused(
          client.browsers.computer.captureScreenshot(id, { region: { ...region, ...wrong } }),
          400,
          'region',
        )
      assert.deepEqual(await client.browsers.computer.setCursorVisibility(id, { hidden: true }), { ok: true })
      assert.deepEqual(await client.browsers.computer.setCursorVisibility(id, { hidden: false }), { ok: true })
    })

    test('a batch runs its actions in order, and ends at the first failure', async () => {
      const move = (x: number) => ({ type: 'move_mouse' as const, move_mouse: { ...at(x, 600), smooth: false } })
      await evaluate(`text.value = ''`)
      const startedAt = performance.now()

      await client.browsers.computer.batch(id, {
        actions: [
          { type: 'click_mouse', click_mouse: at(100, 60) },
          { type: 'type_text', type_text: { text: 'ab', smooth: false } as { text: string } },
          { type: 'sleep', sleep: { duration_ms: 100 } },
          { type: 'press_key', press_key: { keys: ['BackSpace', 'c'] } },
          { type: 'set_cursor', set_cursor: { hidden: false } },
          move(300),
        ],
      })
      assert.equal(await becomes('text.value.length === 2 && text.value.at(-1) === "c"', 'text.value'), 'ac')
      assert.ok(performance.now() - startedAt >= 100)

      const wrong = [
        [{ type: 'scroll', scroll: at(1, 1) }, 'actions[1] (scroll): delta_x'],
        [{ type: 'press_key', press_key: { keys: ['NoSuchKey'] } }, 'actions[1] (press_key): keys.0'],
        [{ type: 'move_mouse', move_mouse: { x: 1024, y: 1 } }, 'actions[1] (move_mouse): x'],
      ] as const
      for (const [index, [action, told]] of wrong.entries()) {
        const never = { type: 'move_mouse' as const, move_mouse: { x: 1, y: 1, smooth: false } }
        const actions = [move(310 + index), action as Kernel.Browsers.ComputerBatchParams.Action, never]
        await refused(client.browsers.computer.batch(id, { actions }), 400, told)
        assert.deepEqual(await client.browsers.computer.getMousePosition(id), at(310 + index, 600))
      }
      for (const [action, told] of [
        [{ type: 'scroll', move_mouse: { x: 1, y: 1 } }, 'actions[0] (scroll): '],
        [{ type: 'sleep', sleep: { duration_ms: 30_001 } }, 'actions[0] (sleep): sleep.duration_ms'],
        [{ type: 'screenshot' }, 'actions[0] (screenshot): type'],
        [{ type: 'sleep', sleep: { duration_ms: 1, x: 1 } }, 'actions[0] (sleep): sleep'],
      ] as const)
        await refused(client.browsers.computer.batch(id, { actions: [action as never] }), 400, told)
      await refused(client.browsers.computer.batch(id, { actions: [] }), 400, 'actions')
      await refused(
        client.browsers.computer.batch(id, { actions: Array.from({ length: 101 }, () => move(1)) }),
        400,
        'actions',
      )
    })

    test('rejects points outside of the screen, and unknown fields', async () => {
      for (const [point, told] of [
        [{ x: 1024, y: 0 }, 'x: must be from 0 to 1023, not 1024 (the screen is 1024x768).'],
        [{ x: 0, y: 768 }, 'y: must be from 0 to 767, not 768 (the screen is 1024x768).'],
        [{ x: -1, y: 0 }, 'x: must be from 0'],
        [{ x: 1.5, y: 0 }, 'x'],
        [{ x: 1 }, 'y'],
      ] as const) {
        const wrong = point as { x: number; y: number }
        await refused(client.browsers.computer.clickMouse(id, wrong), 400, told)
        await refused(client.browsers.computer.moveMouse(id, wrong), 400, told)
        await refused(client.browsers.computer.scroll(id, { ...wrong, delta_y: 1 }), 400, told)
      }
      const surplus = { other: 1 } as object
      for (const call of [
        () => client.browsers.computer.clickMouse(id, { x: 1, y: 1, ...surplus }),
        () => client.browsers.computer.moveMouse(id, { x: 1, y: 1, ...surplus }),
        () => client.browsers.computer.captureScreenshot(id, { ...surplus }),
        () => client.browsers.computer.typeText(id, { text: '', ...surplus }),
        () => client.browsers.computer.pressKey(id, { keys: ['a'], ...surplus }),
        () => client.browsers.computer.scroll(id, { x: 1, y: 1, delta_y: 1, ...surplus }),
        () =>
          client.browsers.computer.dragMouse(id, {
            path: [
              [1, 1],
              [2, 2],
            ],
            ...surplus,
          }),
        () => client.browsers.computer.setCursorVisibility(id, { hidden: false, ...surplus }),
        () =>
          client.browsers.computer.batch(id, { actions: [{ type: 'sleep', sleep: { duration_ms: 0 } }], ...surplus }),
        () => client.browsers.computer.writeClipboard(id, { text: '', ...surplus }),
      ])
        await refused(call(), 400, 'other')
      await refused(client.browsers.computer.moveMouse(id, { x: 1, y: 1, duration_ms: 49 }), 400, 'duration_ms')
      await refused(client.browsers.computer.clickMouse(id, { x: 1, y: 1, hold_keys: ['Nope'] }), 400, 'Nope')
      await refused(client.browsers.computer.typeText(id, { text: 'a\u0007' }), 400, 'U+0007')
    })
  })
}

async function refused(call: Promise<unknown>, status: number, told: string): Promise<void> {
  await assert.rejects(call, (error) => {
    assert.ok(error instanceof APIError, String(error))
    assert.equal(error.status, status)
    assert.ok(error.message.includes(told), `${error.message} does not tell ${told}`)
    return true
  })
}
