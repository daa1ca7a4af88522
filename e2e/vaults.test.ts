import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { endlessScript, startPages } from './testing/pages.ts'
import { relayToLocalhost } from './testing/servers/localhost-relay.ts'

const pages = await startPages()
/** The session's own localhost: a secure origin, and another site than the host's name. */
const local = `http://127.0.0.1:${pages.port}`
const site = pages.url
const patience = { limitSeconds: 60 }
const secret = 'p@ss "wörd" </script> 7Qx2'

pages.serve(
  '/login',
  `<!doctype html><title>Login</title>
  <form id="form">
    <input id="user" type="email"><div id="wrapped"><input id="password" type="password" maxlength="100"></div>
    <select id="country"><option value=""></option><option value="de">Germany</option><option value="fr" disabled>France</option></select>
    <input id="controlled"><x-field id="shadow"></x-field><div id="editor" contenteditable></div>
    <input id="readonly" readonly><input id="disabled" disabled><input id="check" type="checkbox">
    <div id="two"><input class="pair"><input class="pair"></div><input id="code" inputmode="numeric">
    <button>Log in</button>
  </form>
  <iframe id="same" src="/within"></iframe>
  <script>
    window.submitted = 0; window.events = []; window.stolen = []
    form.addEventListener('submit', (event) => { event.preventDefault(); submitted += 1 })
    for (const type of ['input', 'change']) form.addEventListener(type, (event) => events.push([event.target.id, type]))
    customElements.define('x-field', class extends HTMLElement {
      connectedCallback() { this.attachShadow({ mode: 'open' }).innerHTML = '<input id="inner">' }
    })
    // Like libraries that keep the value themselves: what is not told by an event is taken back.
    const own = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value')
    let state = ''
    Object.defineProperty(controlled, 'value', { get: () => own.get.call(controlled), set: (value) => own.set.call(controlled, value) })
    controlled.addEventListener('input', () => { state = own.get.call(controlled) })
    setInterval(() => { if (own.get.call(controlled) !== state) own.set.call(controlled, state) }, 20)
    // What the page changes of JavaScript does not reach the fill.
    document.execCommand = (...args) => stolen.push(args)
    Document.prototype.execCommand = (...args) => stolen.push(args)
    Element.prototype.matches = () => { throw new Error('changed') }
    document.querySelectorAll = Document.prototype.querySelectorAll = () => []
    setTimeout(() => form.insertAdjacentHTML('beforeend', '<input id="late">'), 700)
  </script>`,
)
pages.serve('/within', '<!doctype html><title>Within</title><input id="framed" type="password">')
pages.serve(
  '/foreign',
  `<!doctype html><title>Foreign</title><input id="own"><iframe src="http://localhost:${pages.port}/within"></iframe>
  <iframe sandbox="allow-scripts" srcdoc="<input id=opaque>"></iframe>`,
)
pages.serve(
  '/changing',
  `<!doctype html><title>Changing</title><input id="first"><input id="second"><input id="third">
  <script>first.addEventListener('change', () => second.replaceWith(second.cloneNode()))</script>`,
)
pages.serve(
  '/leaving',
  `<!doctype html><title>Leaving</title><input id="first"><input id="second">
  <script>first.addEventListener('change', () => { location.href = '/within' })</script>`,
)
pages.serve(
  '/busy',
  `<!doctype html><title>Busy</title><input id="user"><script>setTimeout(() => { ${endlessScript} }, 300)</script>`,
)
pages.serve(
  '/focus',
  `<!doctype html><title>Focus</title><input id="user"><input id="trap">
  <script>user.addEventListener('focus', () => trap.focus())</script>`,
)
pages.serve(
  '/tools',
  `<!doctype html><title>Tools</title><script>
  const inputSchema = { type: 'object', properties: { user: {}, login: {} } }
  document.modelContext.registerTool({ name: 'login', description: 'Logs in', inputSchema,
    execute: (input) => { window.got = input; return 'in as ' + input.user + ' with ' + input.login.password } })
  document.modelContext.registerTool({ name: 'fail', description: 'Fails', inputSchema,
    execute: (input) => { throw new Error('no ' + input.login.password) } })</script>`,
)

const berth = await Berth.borrow()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})

// biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
type Body = any

async function ask(method: string, path: string, body?: object): Promise<{ status: number; body: Body }> {
  const response = await berth.request(path, {
    method,
    ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
}

await ask('POST', '/vaults', { name: 'logins' })
const item = '/vaults/logins/items/shop'
const text = (name: string, value: string) => ({ name, type: 'text', value })
const fields = [
  { name: 'user', type: 'email', value: 'ann@example.com' },
  { name: 'password', type: 'password', value: secret },
  { name: 'code', type: 'totp', value: 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ' },
  text('country', 'de'),
  text('closed', 'fr'),
]
const made = await ask('PUT', item, { type: 'credential', spec: { provider: 'kernel', fields } })
assert.equal(made.status, 200, JSON.stringify(made.body))
const bound = '/vaults/logins/items/bound'
await ask('PUT', bound, { type: 'credential', spec: { fields, allowed_domains: ['127.0.0.1'] } })

const client = await berth.client()
const session = await client.browsers.create({ headless: true, vaults: [{ name: 'logins' }] } as never)
await relayToLocalhost(client, session.session_id, pages.port)
const cdp = await CdpClient.open(session.cdp_ws_url)
after(() => cdp.close())

/** Opens the page in a tab of its own, and closes all others. */
async function open(url: string): Promise<string> {
  const { targetInfos } = (await cdp.send('Target.getTargets')) as { targetInfos: { targetId: string; type: string }[] }
  const page = await cdp.openPage(url)
  for (const { targetId, type } of targetInfos) if (type === 'page') await cdp.closePage(targetId)
  await isLoaded(page, "location.href !== 'about:blank' && document.readyState")
  return page
}

/** While the page changes, nothing can be evaluated in it. */
async function isLoaded(page: string, state: string): Promise<void> {
  const evaluate = () => cdp.evaluate(page, state).catch(() => undefined)
  await until('the page', async () => (await evaluate()) === 'complete', patience)
}

const fill = (targets: Record<string, string>, options: object = {}, of = item) =>
  ask('POST', `${of}/operations`, {
    type: 'fill',
    browser_id: session.session_id,
    fields: Object.entries(targets).map(([selector, field]) => ({ field, selector })),
    timeout_ms: 10_000,
    ...options,
  })

/** The outcome in short: `filled`, or why not. */
const outcomes = ({ body }: { body: Body }) =>
  body.fields?.map((field: Body) => field.error_code ?? field.status) ?? [body.code]

test('values are written into elements of every kind, as typing would, and nothing is submitted', async () => {
  const page = await open(`${site}/login`)

  const filled = await fill({
    '#user': 'user',
    '#wrapped': 'password',
    '#country': 'country',
    '#controlled': 'password',
    '#inner': 'password',
    '#editor': 'password',
    '#late': 'user',
    '#framed': 'password',
    '#code': 'code',
  })

  assert.deepEqual([filled.status, filled.body.status], [200, 'completed'], JSON.stringify(filled.body))
  await cdp.evaluate(page, 'new Promise((resolve) => setTimeout(resolve, 100))')
  const values = (await cdp.evaluate(
    page,
    `[user.value, password.value, country.value, controlled.value, shadow.shadowRoot.firstChild.value, editor.textContent,
      late.value, same.contentDocument.getElementById('framed').value]`,
  )) as string[]
  assert.deepEqual(values, ['ann@example.com', secret, 'de', secret, secret, secret, 'ann@example.com', secret])
  assert.match(String(await cdp.evaluate(page, 'code.value')), /^\d{6}$/)
  assert.deepEqual(await cdp.evaluate(page, '[submitted, stolen]'), [0, []])
  const events = (await cdp.evaluate(page, 'events')) as string[][]
  for (const id of ['user', 'password', 'country', 'controlled', 'code']) {
    assert.ok(
      events.some(([target, type]) => target === id && type === 'input'),
      `input of ${id}`,
    )
    assert.equal(events.filter(([target, type]) => target === id && type === 'change').length, 1, `change of ${id}`)
  }
  // A second fill replaces what the first has written.
  assert.equal((await fill({ '#user': 'user', '#password': 'password' })).body.status, 'completed')
  assert.deepEqual(await cdp.evaluate(page, '[user.value, password.value]'), ['ann@example.com', secret])
})

test('a target that is not one editable element fails before anything is written', async () => {
  const page = await open(`${site}/login`)

  for (const [selector, code] of [
    ['#nothing', 'element_not_found'],
    ['.pair', 'ambiguous_selector'],
    ['#two', 'ambiguous_selector'],
    ['#password', 'ambiguous_selector'],
    ['#readonly', 'element_not_editable'],
    ['#disabled', 'element_not_editable'],
    ['#check', 'element_not_editable'],
  ] as const) {
    const fillWithin = (timeout_ms: number) => fill({ '#wrapped': 'password', [selector]: 'user' }, { timeout_ms })
    const brief = await fillWithin(400)
    // The time limit may pass before the page has been examined.
    const failed = outcomes(brief).includes('timeout') ? await fillWithin(20_000) : brief
    assert.deepEqual([failed.status, failed.body.status], [200, 'failed'], selector)
    assert.deepEqual(outcomes(failed), ['not_attempted', code], selector)
  }
  const invalid = await fill({ '#user': 'user', '##': 'user' })
  assert.deepEqual([invalid.status, invalid.body.message], [400, 'fields.1.selector: is not a CSS selector.'])
  assert.deepEqual(await cdp.evaluate(page, '[user.value, password.value, events]'), ['', '', []])

  const partly = await fill({ '#user': 'user', '#country': 'closed', '#password': 'password' })
  assert.deepEqual([partly.body.status, outcomes(partly)], ['failed', ['filled', 'option_not_found', 'not_attempted']])
  assert.deepEqual(await cdp.evaluate(page, '[user.value, password.value]'), ['ann@example.com', ''])
})

test('the page is selected by its URL, or is the only one', async () => {
  await open(`${site}/login`)
  const url = `${site}/changing#part`

  assert.deepEqual(outcomes(await fill({ '#first': 'user' }, { page_url: url })), ['page_not_found'])
  const page = await cdp.openPage(url)
  await isLoaded(page, 'document.readyState')
  assert.deepEqual(outcomes(await fill({ '#first': 'user' })), ['ambiguous_page'])
  assert.deepEqual(outcomes(await fill({ '#first': 'user' }, { page_url: `${site}/changing` })), ['page_not_found'])
  assert.deepEqual(outcomes(await fill({ '#first': 'user' }, { page_url: url })), ['filled'])
  await cdp.openPage(url)
  const fillFirst = () => fill({ '#first': 'user' }, { page_url: url })
  await until('two pages', async () => outcomes(await fillFirst())[0] === 'ambiguous_page', patience)
})

test("a value is written only into frames of the same site, and only on the item's domains", async () => {
  await open(`${local}/foreign`)

  assert.deepEqual(outcomes(await fill({ '#own': 'user' })), ['filled'])
  for (const selector of ['#framed', '#opaque']) {
    const denied = await fill({ '#own': 'user', [selector]: 'password' })
    assert.deepEqual([denied.status, denied.body.code], [403, 'destination_denied'], selector)
  }
  const both = '/vaults/logins/items/both'
  await ask('PUT', both, { type: 'credential', spec: { fields, allowed_domains: ['127.0.0.1', 'localhost'] } })
  const named = await fill({ '#own': 'user', '#framed': 'password' }, {}, both)
  assert.deepEqual(outcomes(named), ['filled', 'filled'], JSON.stringify(named.body))
  assert.equal((await fill({ '#opaque': 'password' }, {}, both)).body.code, 'destination_denied')
  await open(`${site}/login`)
  assert.equal((await fill({ '#user': 'user' }, {}, bound)).body.code, 'destination_denied')
  await open(`${local}/login`)
  assert.deepEqual(outcomes(await fill({ '#user': 'user', '#framed': 'password' }, {}, bound)), ['filled', 'filled'])
  await open('chrome://version/')
  assert.equal((await fill({ body: 'user' }, { timeout_ms: 500 })).status, 200)
})

test('an element that changes during the fill gets no further value', async () => {
  await open(`${site}/changing`)
  const changed = await fill({ '#first': 'user', '#second': 'user', '#third': 'user' })
  assert.deepEqual([changed.body.status, outcomes(changed)], ['failed', ['filled', 'target_changed', 'not_attempted']])

  const page = await open(`${site}/focus`)
  assert.deepEqual(outcomes(await fill({ '#user': 'password' })), ['filled'])
  assert.deepEqual(await cdp.evaluate(page, '[user.value, trap.value]'), [secret, ''], 'the focus decides nothing')

  await open(`${site}/leaving`)
  const left = await fill({ '#first': 'user', '#second': 'user' })
  assert.ok(['filled,filled', 'filled,target_changed'].includes(String(outcomes(left))), JSON.stringify(left.body))
})

test('a fill ends in time although the page hangs', async () => {
  const page = await cdp.openPage(`${site}/busy`)
  await until('the request', () => pages.requests.includes('/busy'), patience)
  await new Promise((resolve) => cdp.send('Runtime.evaluate', { expression: '1' }, page).then(resolve, resolve))

  const late = await fill({ '#user': 'user', '#nothing': 'user' }, { page_url: `${site}/busy`, timeout_ms: 2_500 })

  assert.equal(late.body.status, 'failed', JSON.stringify(late.body))
  assert.ok(['timeout', 'element_not_found'].includes(outcomes(late).find((code: string) => code !== 'not_attempted')))
})

test('a tool of a page is called with values, which its caller does not receive', async () => {
  const page = await open(`${local}/tools`)
  const named = async (name: string) => {
    const { body } = await ask('GET', `/browsers/${session.session_id}/webmcp/tools`)
    return body.tools.find(({ tool }: Body) => tool.name === name)?.tool_ref
  }
  await until('the tool', async () => (await named('fail')) !== undefined, patience)
  const invoke = async (name: string, change: object = {}) =>
    ask('POST', `${item}/operations`, {
      type: 'webmcp_invoke',
      browser_id: session.session_id,
      tool_ref: await named(name),
      page_url: `${local}/tools`,
      input: { user: 'me', login: { password: null } },
      bindings: [{ field: 'password', input_path: '/login/password' }],
      ...change,
    })

  const done = await invoke('login')
  assert.deepEqual([done.status, done.body.status, done.body.output], [200, 'completed', 'in as me with [hidden]'])
  assert.deepEqual(await cdp.evaluate(page, 'window.got'), { user: 'me', login: { password: secret } })
  const failed = await invoke('fail')
  assert.deepEqual([failed.status, failed.body.status], [200, 'error'])
  assert.ok(!JSON.stringify(failed.body).includes('7Qx2'))

  for (const [status, code, change] of [
    [404, 'tool_not_found', { tool_ref: 'tool_0' }],
    [400, 'page_not_found', { page_url: `${local}/login` }],
    [400, 'invalid_input', { bindings: [{ field: 'password', input_path: '/user' }] }],
    [400, 'field_unavailable', { bindings: [{ field: 'other', input_path: '/login/password' }] }],
  ] as const) {
    const refused = await invoke('login', change)
    assert.deepEqual([refused.status, refused.body.code], [status, code])
  }
  const { body: events } = await ask('GET', `${item}/events`)
  const names = events.map(({ name }: Body) => name)
  for (const name of ['item.created', 'fill.completed', 'fill.failed', 'fill.denied', 'webmcp.completed']) {
    assert.ok(names.includes(name), name)
  }
  assert.ok(!JSON.stringify(events).includes('7Qx2'))
})
