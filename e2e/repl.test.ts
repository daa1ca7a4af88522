import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Berth } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { startPages } from './testing/pages.ts'
import { relayToLocalhost } from './testing/servers/localhost-relay.ts'

const pages = await startPages()
/** The session's own localhost is a secure origin, and its two names are different sites. */
const site = `http://127.0.0.1:${pages.port}`
pages.serve(
  '/form',
  `<!doctype html><title>Form</title><style>body { height: 3000px }</style>
  <input id="name"><button id="go" onclick="document.title = document.getElementById('name').value">Go</button>
  <button id="twice" ondblclick="document.title = 'twice'">Twice</button>
  <button class="many">1</button><button class="many">2</button><button id="off" disabled>Off</button>
  <div style="position: relative"><button id="under">Under</button><div id="over" style="position: absolute; inset: 0"></div></div>
  <input id="file" type="file" multiple><textarea id="keys"></textarea><p id="late" hidden>late</p>
  <script>
    keys.addEventListener('keydown', (event) => { window.keys_seen = [...(window.keys_seen ?? []), event.key + (event.ctrlKey ? '+ctrl' : '') + (event.shiftKey ? '+shift' : '')] })
    keys.addEventListener('keypress', (event) => { window.pressed = event.key })
    setTimeout(() => { late.hidden = false }, 200)
    document.modelContext?.registerTool({ name: 'double', description: 'Doubles', execute: ({ n }) => 2 * n })
    document.modelContext?.registerTool({ name: 'slow', description: 'Never ends', execute: () => new Promise(() => {}) })
  </script>
  <iframe src="http://localhost:${pages.port}/inner"></iframe>`,
)
pages.serve('/inner', '<!doctype html><title>Inner</title><h1>Inner</h1>')
const berth = await Berth.borrow()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})
const client = await berth.client()
const session = await client.browsers.create({ headless: true })
await relayToLocalhost(client, session.session_id, pages.port)

interface Item {
  readonly type: 'text' | 'image'
  readonly channel?: string
  readonly text?: string
  readonly mime_type?: string
  readonly data_b64?: string
}

interface Outcome {
  readonly success: boolean
  readonly repl_id: string
  readonly content?: readonly Item[]
  readonly content_truncated?: boolean
  readonly error?: string
  readonly stack?: string
  readonly repl_terminated?: boolean
  readonly duration_ms?: number
}

async function post(body: object): Promise<Response> {
  return berth.request(`/browsers/${session.session_id}/repl`, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  })
}

async function run(code: string, options: object = {}): Promise<Outcome> {
  const response = await post({ code, ...options })
  assert.equal(response.status, 200)
  return (await response.json()) as Outcome
}

/** Returns the output of the code as one text. The code has to succeed. */
async function written(code: string): Promise<string> {
  const { success, error, content = [] } = await run(code)
  assert.equal(error, undefined)
  assert.ok(success)
  return content.map(({ text }) => text).join('')
}

test('top-level definitions remain, and only written values are returned', async () => {
  const first = await run('let one = 1; const two = 2; var three = 3; function four() { return 4 } class Five {}; one')
  assert.deepEqual([first.success, first.content], [true, undefined])
  assert.equal(
    await written('one += await Promise.resolve(10); repl.write([one, two, three, four(), typeof Five].join())'),
    '11,2,3,4,function',
  )
  assert.equal(await written('const { sep } = await import("node:path"); repl.write(sep)'), '/')
  assert.equal(await written('repl.write(Object.keys(await import("playwright-core")).includes("chromium"))'), 'true')
  assert.equal(await written('repl.write(Object.keys(await import("patchright-core")).includes("chromium"))'), 'true')

  const { content } = await run(
    'console.log("a", 1); console.warn("b"); repl.write("c"); repl.write({ d: [1] }); console.info("e"); console.error("f")',
  )
  assert.deepEqual(content, [
    { type: 'text', channel: 'stdout', text: 'a 1\n' },
    { type: 'text', channel: 'stderr', text: 'b\n' },
    { type: 'text', channel: 'write', text: 'c' },
    { type: 'text', channel: 'write', text: '{ d: [ 1 ] }' },
    { type: 'text', channel: 'stdout', text: 'e\n' },
    { type: 'text', channel: 'stderr', text: 'f\n' },
  ])
})

test('errors do not change the process', async () => {
  await run('let kept = 1')
  for (const [code, error] of [
    ['throw new TypeError("no good")', /^TypeError: no good$/],
    ['nowhere()', /^ReferenceError/],
    ['return 5', /^SyntaxError/],
    ['import fs from "node:fs"', /^SyntaxError/],
    ['export const a = 1', /^SyntaxError/],
    ['let broken = (() => { throw new Error("x") })()', /^Error: x$/],
    ['await Promise.reject("plain")', /^plain$/],
    ['await import("no-such-package")', /no-such-package/],
  ] as const) {
    const outcome = await run(code)
    assert.equal(outcome.success, false, code)
    assert.match(outcome.error ?? '', error)
    assert.equal(outcome.repl_terminated, undefined)
  }
  assert.match((await run('throw new Error("with stack")')).stack ?? '', /^Error: with stack\n {4}at <anonymous>:1:7$/)
  assert.equal(await written('repl.write(kept)'), '1')
})

test('a process that hangs or exits is replaced by one with another name', async () => {
  const { repl_id: id } = await run('let kept = 1')
  const hung = await run('console.log("begun"); for (;;);', { timeout_sec: 1 })
  assert.deepEqual(
    [hung.success, hung.error, hung.repl_terminated, hung.repl_id],
    [false, 'execution timed out after 1000ms', true, id],
  )
  assert.equal(hung.content?.[0]?.text, 'begun\n')
  const next = await run('repl.write(typeof kept + repl.id)')
  assert.notEqual(next.repl_id, id)
  assert.equal(next.content?.[0]?.text, `undefined${next.repl_id}`)

  for (const code of [
    'process.exit(3)',
    'setTimeout(() => { throw new Error("late") }); await new Promise(() => {})',
    'Promise.reject(new Error("unheard")); await new Promise(() => {})',
    'const all = []; for (;;) all.push(new Array(1e6).fill(1.5))',
    'require("node:fs").writeSync(3, "no message\\n"); await new Promise(() => {})',
  ]) {
    const broken = await run(code)
    assert.deepEqual([broken.success, broken.repl_terminated], [false, true], code)
  }
  const before = await run('let again = 1')
  const reset = await run('', { reset: true })
  assert.deepEqual([reset.success, reset.repl_id === before.repl_id], [true, false])
  assert.equal(await written('repl.write(typeof again)'), 'undefined')
})

test('output is limited, and output between calls is returned by the next', async () => {
  const much = await run('repl.write("x".repeat(300 * 1024)); repl.write("y")')
  assert.deepEqual(
    [much.content?.length, much.content?.[0]?.text?.length, much.content_truncated],
    [1, 256 * 1024, true],
  )
  assert.equal((await run('repl.write("short")')).content_truncated, undefined)

  await run('setTimeout(() => { for (let i = 0; i < 1100; i++) console.log(i); globalThis.done = true })')
  const later = await run('while (!globalThis.done) await waitMs(10); repl.write("end")')
  assert.equal(later.content_truncated, true)
  assert.equal(later.content?.at(-1)?.text, 'end')

  const image = await run(
    'repl.emitImage(await captureScreenshot("/tmp/shot.webp", false, 200)); repl.emitImage(Buffer.from([0xff, 0xd8, 0xff, 0xe0]))',
  )
  assert.deepEqual(
    image.content?.map(({ mime_type }) => mime_type),
    ['image/webp', 'image/jpeg'],
  )
  assert.match((await run('repl.emitImage("bm8gaW1hZ2U=")')).error ?? '', /must be PNG/)
  assert.match(
    (await run('repl.emitImage(Buffer.concat([Buffer.from([0xff, 0xd8, 0xff]), Buffer.alloc(9 << 20)]))')).error ?? '',
    /at most/,
  )
  const images = await run(
    'for (let i = 0; i < 3; i++) repl.emitImage(Buffer.concat([Buffer.from([0xff, 0xd8, 0xff]), Buffer.alloc(7 << 20)]))',
  )
  assert.deepEqual([images.content?.length, images.content_truncated], [2, true])
})

test('helpers control the page', async () => {
  assert.equal(await written(`await gotoUrl('${site}/form'); repl.write(await waitForLoad())`), 'true')
  assert.deepEqual(
    JSON.parse(
      await written(
        'const info = await pageInfo(); repl.write(JSON.stringify([info.title, info.url, info.document.height > 2999, info.readyState, info.dialog]))',
      ),
    ),
    ['Form', `${site}/form`, true, 'complete', null],
  )
  assert.equal(
    await written('await fillInput("#name", "Ада 🦊"); await click("#go"); repl.write(await js("document.title"))'),
    'Ада 🦊',
  )
  assert.equal(
    await written(
      'await fillInput("#name", "!", { clearFirst: false }); repl.write(await js(() => document.querySelector("#name").value))',
    ),
    'Ада 🦊!',
  )
  assert.equal(
    await written('await click("#twice", { clickCount: 2 }); repl.write(await js("document.title"))'),
    'twice',
  )
  for (const [selector, reason] of [
    ['.many', '2 visible elements'],
    ['#off', 'disabled'],
    ['#under', '<div> covers'],
    ['#none', 'no match'],
  ]) {
    assert.match(
      (await run(`await click('${selector}', { timeoutSec: 1 })`)).error ?? '',
      new RegExp(`${selector}: .*${reason}`),
    )
  }
  assert.equal(
    await written(
      'repl.write(await waitForElement("#late")); repl.write(await waitForElement("#none", { timeoutSec: 0.2 })); repl.write(await waitForElement("#none", { state: "detached" }))',
    ),
    'truefalsetrue',
  )
  assert.equal(
    await written(
      'await js("keys.focus()"); await typeText("añ"); await pressKey("b"); await pressKey("Enter"); await pressKey("a", { ctrl: true }); await pressKey("Tab", 8); repl.write(JSON.stringify([await js("keys.value"), await js("keys_seen")]))',
    ),
    JSON.stringify(['añb\n', ['b', 'Enter', 'a+ctrl', 'Tab+shift']]),
  )
  assert.equal(await written('await dispatchKey("#keys", "Enter"); repl.write(await js("pressed"))'), 'Enter')
  assert.equal(
    await written(
      'await scroll(100, 100, 400); while ((await pageInfo()).scroll.y === 0) await waitMs(20); repl.write("scrolled")',
    ),
    'scrolled',
  )
  assert.equal(
    await written(
      'require("fs").writeFileSync("/tmp/up.txt", "up"); await uploadFile("#file", ["/tmp/up.txt"]); repl.write(await js("file.files[0].text()"))',
    ),
    'up',
  )
  assert.equal(await written('repl.write(await js((n) => n + 1, { arg: 2 }))'), '3')
  assert.equal(
    await written(
      'const inner = await iframeTarget("/inner"); repl.write(inner.type + await js("document.title", { targetId: inner.targetId })); repl.write(await iframeTarget("nothing"))',
    ),
    'iframeInnernull',
  )
  assert.match(await written('repl.write(await accessibilitySnapshot())'), /role: 'button',\s+name: 'Go'/)
  assert.equal(await written('repl.write(await waitForNetworkIdle(0.1, 5))'), 'true')
  assert.equal(
    await written(
      'setTimeout(() => js("setTimeout(() => alert(1)), 0")); const event = await waitForEvent("Page.javascriptDialogOpening"); repl.write(event.params.message + (await pageInfo()).dialog.type); await cdp("Page.handleJavaScriptDialog", { accept: true })',
    ),
    '1alert',
  )
  assert.equal(
    await written(
      'repl.write(drainEvents().some(({ method }) => method === "Page.javascriptDialogOpening")); repl.write(drainEvents().length)',
    ),
    'true0',
  )
})

test('helpers manage tabs, which other clients of the session see', async () => {
  const cdp = await CdpClient.open(session.cdp_ws_url)
  const opened = await written(`const opened = await newTab('${site}/inner'); await waitForLoad(); repl.write(opened)`)
  const { targetInfos } = await cdp.send('Target.getTargets')
  assert.ok(
    (targetInfos as { targetId: string; url: string }[]).some(
      ({ targetId, url }) => targetId === opened && url.endsWith('/inner'),
    ),
  )

  assert.equal(await written('repl.write((await currentTab()).title); repl.write((await listTabs()).length)'), 'Inner2')
  assert.equal(
    await written(
      'await switchTab((await listTabs()).find(({ url }) => url.endsWith("/form"))); repl.write((await pageInfo()).url.slice(-5))',
    ),
    '/form',
  )
  assert.equal(
    await written(
      'await closeTab(opened); repl.write((await listTabs()).length); repl.write((await ensureRealTab()).url.slice(-5))',
    ),
    '1/form',
  )
  assert.equal(await written('repl.write((await cdp("Browser.getVersion", {}, null)).product.length > 0)'), 'true')
  assert.match((await run('await cdp("Browser.close", {}, null)')).error ?? '', /everybody/)
  assert.equal(
    await written('repl.write(Object.isFrozen(browser) && browser.click === click && browser.webmcp === webmcp)'),
    'true',
  )
  await cdp.close()
})

test('helpers fail shortly before the time limit of the call, and keep the process', async () => {
  const { repl_id: id } = await run('1')
  for (const code of [
    'await waitMs(60_000)',
    'await waitForEvent("Nothing.happens")',
    'await js("new Promise(() => {})")',
    'repl.write(await waitForElement("#none", { timeoutSec: 60 }))',
  ]) {
    const cut = await run(code, { timeout_sec: 4 })
    assert.equal(cut.repl_terminated, undefined, code)
    assert.equal(cut.repl_id, id)
    assert.equal(cut.success, code.startsWith('repl.write'))
  }
})

test('tools of pages can be used, and are cancelled with the call', async () => {
  assert.equal(
    await written(
      'const [double] = (await webmcp.listTools()).filter(({ tool }) => tool.name === "double"); repl.write((await webmcp.invokeTool(double.tool_ref, { n: 4 })).output)',
    ),
    '8',
  )
  assert.equal(
    await written(
      'const [slow] = (await webmcp.listTools()).filter(({ tool }) => tool.name === "slow"); globalThis.given = webmcp.invokeTool(slow.tool_ref).catch((error) => error.code); repl.write("begun")',
    ),
    'begun',
  )
  assert.equal(await written('repl.write(await given)'), 'outcome_unknown')
  assert.equal(
    await written(`const { length } = await webmcp.addCustomTools({ namespace: 'repl', source: "[{ kind: 'page', match: { url_patterns: ['*'] }, tool: { name: 'path', description: 'd' }, execute: () => location.pathname }]" })
      const [path] = (await webmcp.listTools()).filter(({ source }) => source.custom)
      repl.write((await webmcp.invokeTool(path.tool_ref)).output)
      for (const { id } of await webmcp.listCustomTools()) await webmcp.removeCustomTool(id)
      repl.write(String((await webmcp.listCustomTools()).length + length))`),
    '/form1',
  )
})

test('files, processes and loopback of the session are available, and Playwright over CDP_ENDPOINT', async () => {
  assert.equal(
    await written(`const server = (await import('node:http')).createServer((_request, response) => response.end('pong')).listen(0, '127.0.0.1')
      await new Promise((resolve) => server.once('listening', resolve))
      repl.write(await httpGet('http://127.0.0.1:' + server.address().port)); server.close()`),
    'pong',
  )
  assert.match((await run('await httpGet("http://localhost:9/")')).error ?? '', /fetch failed/)
  assert.equal(
    await written(`const { chromium } = await import('playwright-core')
      const connected = await chromium.connectOverCDP(process.env.CDP_ENDPOINT)
      repl.write(connected.contexts()[0].pages().length); await connected.close()`),
    '1',
  )
})

test('helpers reconnect after a browser crash', async () => {
  await run('await cdp("Browser.crash", {}, null).catch(() => {})')

  assert.equal(
    await written(`await gotoUrl('${site}/inner'); await waitForLoad(); repl.write(await js('document.title'))`),
    'Inner',
  )
})

test('calls run one at a time', async () => {
  await run('globalThis.running = 0; globalThis.most = 0')
  await Promise.all(
    Array.from({ length: 4 }, () => run('most = Math.max(most, ++running); await waitMs(50); running--')),
  )

  assert.equal(await written('repl.write(most)'), '1')
})

test('help names every helper, and invalid calls are refused', async () => {
  const help = await written('repl.help()')
  const names = JSON.parse(await written('repl.write(JSON.stringify(Object.keys(browser)))')) as string[]
  for (const name of names) assert.ok(help.includes(name), name)

  for (const [body, field] of [
    [{ code: '' }, 'code'],
    [{}, 'code'],
    [{ code: 1 }, 'code'],
    [{ code: '1', timeout_sec: 301 }, 'timeout_sec'],
    [{ code: '1', reset: 'yes' }, 'reset'],
    [{ code: '1', other: 1 }, 'other'],
  ] as const) {
    const refused = await post(body)
    assert.equal(refused.status, 400)
    assert.match(((await refused.json()) as { message: string }).message, new RegExp(field))
  }
  assert.equal((await post({ code: 'x'.repeat(9 << 20) })).status, 413)
})
