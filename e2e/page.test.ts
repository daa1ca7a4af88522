import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { rounds } from './fault/testing/deep.ts'
import { Berth } from './testing/berth.ts'
import { endlessScript, startPages } from './testing/pages.ts'
import { relayToLocalhost } from './testing/servers/localhost-relay.ts'

/* Pages as text with references, and the operations on them. */

const pages = await startPages()
/** The session's own localhost: its two names are different sites. */
const site = `http://127.0.0.1:${pages.port}`
const other = `http://localhost:${pages.port}`
pages.serve(
  '/form',
  `<!doctype html><title>Order</title>
<header><nav aria-label="Site"><a href="/second">Second page</a></nav></header>
<main>
  <h1>Order <em>now</em></h1>
  <p>Fresh <b>bread</b>, every day. <span style="display:none">Not to be seen.</span></p>
  <form onsubmit="event.preventDefault(); document.title = 'sent ' + [...new FormData(this)].map(([k, v]) => k + '=' + (v.name ?? v)).join(',')">
    <label>Name <input name="name" required></label>
    <input name="day" type="date" aria-label="Day">
    <input name="secret" type="password" placeholder="Password" value="hidden-value">
    <select name="size" aria-label="Size"><option value="s">Small</option><option value="l">Large</option></select>
    <label><input type="checkbox" name="gift" value="yes"> As a gift</label>
    <input type="file" name="list" aria-label="List">
    <div contenteditable="true" aria-label="Note">old note</div>
    <button>Send</button> <button type="button" disabled>Cancel</button>
  </form>
  <div id="shadow"></div>
  <div style="cursor: pointer" onclick="document.title = 'clicked'">A card</div>
  <table><tr><th>Item</th><th>Price</th></tr><tr><td>Bread</td><td>3 €</td></tr></table>
  <ul><li>One <a href="/second">link</a></li><li>Two<ul><li>Inner</li></ul></li></ul>
  <pre>code  here</pre>
  <div style="height: 3000px"></div>
  <button onclick="this.textContent = 'Pressed'">Far away</button>
  <div style="position: relative"><button style="position: absolute">Under</button>
    <div id="cover" role="dialog" aria-label="Cookies" style="position: absolute; width: 400px; height: 60px; background: #fff"><button onclick="cover.remove()">Accept</button></div></div>
  <div style="height: 100px"></div>
  <iframe title="Inner" src="/inner" height="100"></iframe>
  <iframe title="Outer" src="${other}/inner" height="100"></iframe>
</main>
<footer>Imprint</footer>
<script>
  shadow.attachShadow({ mode: 'open' }).innerHTML = '<button onclick="document.title = \\'in shadow\\'">In shadow</button><slot></slot>'
</script>`,
)
pages.serve(
  '/second',
  '<!doctype html><title>Second</title><h1>The second page</h1><script>setTimeout(() => { document.body.append("late text") }, 300)</script>',
)
pages.serve(
  '/inner',
  `<!doctype html><title>Inner</title><p>In a frame</p><input aria-label="Word"><button onclick="this.textContent = 'Done ' + document.querySelector('input').value">Do</button>`,
)
pages.serve(
  '/large',
  `<!doctype html><title>Large</title><main>${Array.from({ length: 1000 }, (_, index) => `<article><h3>Item ${index}</h3><p>Some text <a href="/x${index}">link ${index}</a> more</p><button>Buy ${index}</button></article>`).join('')}</main>`,
)
pages.serve('/hung', `<!doctype html><title>Hung</title><button onclick="${endlessScript}">Hang</button>`)

const berth = await Berth.borrow()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})
const client = await berth.client()
const { session_id: id } = await client.browsers.create({ headless: true, timeout_seconds: 600 })
await relayToLocalhost(client, id, pages.port)

interface Operation {
  readonly method: string
  readonly path: string
}

const snapshotPage = { method: 'POST', path: '/snapshot' }
const navigatePage = { method: 'POST', path: '/navigate' }
const clickElement = { method: 'POST', path: '/click' }
const typeIntoElement = { method: 'POST', path: '/type' }
const selectOptions = { method: 'POST', path: '/select' }
const pressPageKey = { method: 'POST', path: '/press' }
const uploadToElement = { method: 'POST', path: '/upload' }
const waitForPage = { method: 'POST', path: '/wait_for' }
const extractPage = { method: 'POST', path: '/extract' }
const takeMarkedScreenshot = { method: 'POST', path: '/screenshot' }
const openTab = { method: 'POST', path: '/tabs' }
const listTabs = { method: 'GET', path: '/tabs' }
const activateTab = { method: 'POST', path: '/tabs/{tab_id}/activate' }
const closeTab = { method: 'DELETE', path: '/tabs/{tab_id}' }

interface Failure {
  readonly code: string
  readonly message: string
}

async function send(
  { method, path }: Operation,
  body?: object,
  params: { readonly tab_id?: string } = {},
): Promise<{ status: number; answer: unknown }> {
  const headers = { 'content-type': 'application/json' }
  const init = { method, ...(body && { headers, body: JSON.stringify(body) }) }
  const filled = path.replace('{tab_id}', params.tab_id ?? '')
  const response = await berth.request(`/browsers/${id}/page${filled}`, init)
  const text = await response.text()
  return { status: response.status, answer: text ? JSON.parse(text) : undefined }
}

async function succeed<Answer>(
  operation: Operation,
  body?: object,
  params?: { readonly tab_id?: string },
): Promise<Answer> {
  const { status, answer } = await send(operation, body, params)
  assert.ok(status < 300, `${operation.path}: ${JSON.stringify(answer)}`)
  return answer as Answer
}

async function fail(operation: Operation, body: object): Promise<string> {
  const { status, answer } = await send(operation, body)
  const { code, message } = answer as Failure
  return `${status} ${code} ${message}`
}

interface Snapshot {
  readonly url: string
  readonly title: string
  readonly text: string
  readonly is_truncated: boolean
}

const snapshot = (options: object = {}) => succeed<Snapshot>(snapshotPage, options)

/** The reference in front of the line. */
async function refOf(line: string): Promise<string> {
  const { text } = await snapshot({ max_chars: 100_000 })
  const [, ref] = new RegExp(`^ *(\\w+) ${line}`, 'm').exec(text) ?? []
  assert.ok(ref, `no line ${line} in\n${text}`)
  return ref
}

const openForm = () => succeed(navigatePage, { url: `${site}/form` })
before(openForm)

test('reads a page as text with references', async () => {
  const { text, title, url } = await snapshot()

  assert.deepEqual([title, url], ['Order', `${site}/form`])
  const lines = text.replaceAll(/\b(f\d+)?e\d+ /g, '* ').split('\n')
  assert.deepEqual(lines.slice(0, 24), [
    'navigation "Site"',
    ' * link "Second page" /second',
    'main',
    ' heading "Order now" 1',
    ' Fresh bread, every day.',
    ' * textbox "Name" required',
    ' * textbox "Day" date',
    ' * textbox "Password" filled password',
    ' * combobox "Size" ="Small" [Small | Large]',
    ' * checkbox "As a gift"',
    ' * file "List"',
    ' * textbox "Note" ="old note"',
    ' * button "Send"',
    ' * button "Cancel" disabled',
    ' * button "In shadow"',
    ' * clickable "A card"',
    ' table',
    '  row Item | Price',
    '  row Bread | 3 €',
    ' One',
    ' * link "link" /second',
    ' Two',
    ' Inner',
    ' code here',
  ])
  assert.match(text, /^frame f\d+ .*\/inner\n In a frame\n f\d+e\d+ textbox "Word"/m)
  assert.equal([...text.matchAll(/textbox "Word"/g)].length, 2)
  assert.doesNotMatch(text, /Not to be seen|hidden-value/)
})

test('fills in a form and submits it', async () => {
  await succeed(typeIntoElement, { ref: await refOf('textbox "Name"'), text: 'Ada' })
  await succeed(typeIntoElement, { ref: await refOf('textbox "Name"'), text: ' L.', append: true })
  await succeed(typeIntoElement, { ref: await refOf('textbox "Day"'), text: '2026-12-24' })
  await succeed(typeIntoElement, { ref: await refOf('textbox "Password"'), text: '' })
  await succeed(selectOptions, { ref: await refOf('combobox "Size"'), values: ['Large'] })
  await succeed(clickElement, { ref: await refOf('checkbox') })
  await client.browsers.fs.writeFile(id, 'content', { path: '/tmp/list.txt' })
  await succeed(uploadToElement, { ref: await refOf('file'), paths: ['/tmp/list.txt'] })
  await succeed(typeIntoElement, { ref: await refOf('textbox "Note"'), text: 'new note' })
  const { text } = await snapshot({ changes: true })
  await succeed(clickElement, { ref: await refOf('button "Send"') })
  const { title } = await succeed<Snapshot>(waitForPage, { text: 'Order' })

  assert.match(text, /^- .*\n\+ (.*\n\+ )?.*textbox "Note" ="new note" focused$/m)
  assert.equal(title, 'sent name=Ada L.,day=2026-12-24,secret=,size=l,gift=yes,list=list.txt')
})

test('clicks in shadow trees, on cards, out of view, and in frames of both kinds', async () => {
  await openForm()
  await succeed(clickElement, { ref: await refOf('button "In shadow"') })
  assert.equal((await snapshot()).title, 'in shadow')
  await succeed(clickElement, { ref: await refOf('clickable "A card"') })
  assert.equal((await snapshot()).title, 'clicked')
  await succeed(clickElement, { ref: await refOf('button "Far away"') })
  await refOf('button "Pressed"')

  const { text } = await snapshot({ max_chars: 100_000 })
  const boxes = [...text.matchAll(/(\w+) textbox "Word"/g)].map(([, ref]) => ref)
  const buttons = [...text.matchAll(/(\w+) button "Do"/g)].map(([, ref]) => ref)
  for (const [index, ref] of boxes.entries()) {
    await succeed(typeIntoElement, { ref, text: `word ${index}`, submit: true })
    await succeed(clickElement, { ref: buttons[index] })
    await refOf(`button "Done word ${index}"`)
  }
  assert.equal(boxes.length, 2)
})

test('reports why an element cannot be used', async () => {
  const under = await refOf('button "Under"')
  const accept = await refOf('button "Accept"')

  assert.match(
    await fail(clickElement, { ref: under }),
    /^409 element_not_usable ref: e\d+ is covered by button "Accept" \(e\d+\)\.$/,
  )
  assert.match(await fail(clickElement, { ref: await refOf('button "Cancel"') }), /^409 .* is disabled\.$/)
  assert.match(await fail(typeIntoElement, { ref: accept, text: 'x' }), /^409 .* takes no text\.$/)
  assert.match(await fail(selectOptions, { ref: accept, values: ['x'] }), /^409 .* is not a list of options\.$/)
  assert.match(
    await fail(selectOptions, { ref: await refOf('combobox'), values: ['x'] }),
    /^409 .* has no option "x"\.$/,
  )
  assert.match(await fail(uploadToElement, { ref: accept, paths: ['/tmp/list.txt'] }), /^409 .* is not a file field\.$/)
  assert.match(await fail(uploadToElement, { ref: accept, paths: ['/tmp/none'] }), /^404 file_not_found/)
  assert.match(await fail(pressPageKey, { key: 'Nokey' }), /^400 invalid_input key: there is no key "Nokey"/)
  await succeed(clickElement, { ref: accept })
  assert.match(await fail(clickElement, { ref: accept }), /^404 element_not_found ref: there is no element e\d+/)
  await succeed(clickElement, { ref: under })
  assert.match(await fail(clickElement, { ref: 'e99999' }), /^404 element_not_found/)
  assert.match(await fail(clickElement, { ref: 'button' }), /^400 invalid_input ref: must be a reference/)
})

test('reads a page as Markdown', async () => {
  await openForm()

  const { markdown } = await succeed<{ markdown: string }>(extractPage)

  assert.match(markdown, /^# Order \*now\*\n\nFresh \*\*bread\*\*, every day\.\n/)
  assert.match(markdown, /\| Item \| Price \|\n\|---\|---\|\n\| Bread \| 3 € \|/)
  assert.match(markdown, /- One \[link\]\(http.*\/second\)\n- Two\n {2}- Inner\n/)
  assert.match(markdown, /```\ncode {2}here\n```/)
  assert.doesNotMatch(markdown, /Imprint|Second page/)
})

test('takes a screenshot with the references on it', async () => {
  await openForm()
  const name = await refOf('textbox "Name"')

  const { png_b64, marks } = await succeed<{ png_b64: string; marks: { ref: string }[] }>(takeMarkedScreenshot)

  assert.equal(Buffer.from(png_b64, 'base64').subarray(1, 4).toString(), 'PNG')
  assert.ok(marks.some(({ ref }) => ref === name))
})

test('navigates, goes back, and waits', async () => {
  await openForm()
  const second = await succeed<Snapshot>(navigatePage, { url: `${site}/second` })
  await succeed(waitForPage, { text: 'late text' })
  const back = await succeed<Snapshot>(navigatePage, { history: 'back' })

  assert.equal(second.title, 'Second')
  assert.equal(back.title, 'Order')
  assert.match(
    await fail(navigatePage, { url: 'http://127.0.0.1:9/' }),
    /^502 navigation_failed url: the page did not load: net::ERR_/,
  )
  assert.match(await fail(navigatePage, {}), /^400 invalid_input url: give either url or history/)
  assert.match(
    await fail(waitForPage, { text: 'never', timeout_ms: 200 }),
    /^504 page_wait_timed_out .*does not show "never"/,
  )
})

test('opens, lists, uses and closes tabs', async () => {
  const opened = await succeed<{ tab_id: string }>(openTab, { url: `${site}/second` })
  const { tabs } = await succeed<{ tabs: { tab_id: string; is_active: boolean }[] }>(listTabs)
  const first = tabs.find(({ tab_id }) => tab_id !== opened.tab_id)
  const inFront = await snapshot()
  await succeed(activateTab, undefined, { tab_id: first?.tab_id ?? '' })
  const other = await snapshot({ tab_id: opened.tab_id })
  const { status } = await send(closeTab, undefined, { tab_id: opened.tab_id })

  assert.equal(tabs.length, 2)
  assert.equal(inFront.title, 'Second')
  assert.equal(other.title, 'Second')
  assert.equal(status, 204)
  assert.match(
    await fail(snapshotPage, { tab_id: opened.tab_id }),
    /^404 target_not_found tab_id: there is no tab t\d+/,
  )
})

test('lists no tab whose close was answered', async () => {
  const left: number[] = []
  const count = rounds({ short: 8, deep: 20 })
  for (let round = 0; round < count; round++) {
    const { tab_id } = await succeed<{ tab_id: string }>(openTab, { url: `${site}/second` })
    await send(closeTab, undefined, { tab_id })
    const { tabs } = await succeed<{ tabs: unknown[] }>(listTabs)
    left.push(tabs.length)
  }

  assert.deepEqual(left, Array(count).fill(1))
})

test('truncates a large page, and reads all of it in time', async () => {
  await succeed(navigatePage, { url: `${site}/large` })
  const cut = await snapshot({ max_chars: 1_000 })
  const whole = await snapshot({ max_chars: 200_000 })
  const usable = await snapshot({ max_chars: 200_000, interactive: true })

  assert.equal(cut.is_truncated, true)
  assert.ok(cut.text.length <= 1_000)
  assert.equal(whole.is_truncated, false)
  assert.match(whole.text, /button "Buy 999"/)
  assert.ok(usable.text.length < whole.text.length)
})

test('does not wait for a page that hangs', async () => {
  await succeed(navigatePage, { url: `${site}/hung` })
  await succeed(clickElement, { ref: await refOf('button "Hang"') })

  assert.match(await fail(snapshotPage, {}), /page_not_answering/)
})
