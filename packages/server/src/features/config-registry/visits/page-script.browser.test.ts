import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { chromium } from 'playwright-core'
import { Visit } from '../analysis.ts'
import { actScript, openScript, viewScript } from './page-script.ts'

const shop = `<!doctype html><link rel=icon href="data:,"><title>Shop</title><h1>Shop</h1>
<a href="/prices">Prices</a><button style="display:none">Hidden</button>
<form onsubmit="document.title = 'Searched ' + q.value; return false"><input id=q aria-label="Text"><button>Search</button></form>`
const answers: Readonly<Record<string, readonly [status: number, type: string, body: string, headers?: object]>> = {
  '/': [200, 'text/html', shop],
  '/prices': [200, 'text/html', '<title>Prices</title><p>Nine'],
  '/late': [200, 'text/html', '<script>setTimeout(() => { document.body.textContent = "late text" }, 1500)</script>'],
  '/widget': [200, 'text/html', '<iframe src="/captcha-delivery.com/x"></iframe>'],
  '/mitigated': [403, 'text/html', 'no', { 'cf-mitigated': 'challenge' }],
  '/file': [200, 'application/zip', 'PK'],
  '/text': [200, 'text/plain', 'plain text'],
  '/password': [200, 'text/html', '<input type=password><input type=password hidden>'],
}
const server = createServer((request, response) => {
  const [status, type, body, headers] = answers[request.url ?? ''] ?? [404, 'text/html', 'not here']
  if (request.url === '/moved') return void response.writeHead(302, { location: '/prices' }).end()
  response.writeHead(status, { 'content-type': type, ...headers }).end(body)
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const site = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
// Suggestions of the address bar would take a renderer for each window.
const args = ['--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup']
const browser = await chromium.launch({ executablePath: '/usr/lib/chromium/chromium', args })
after(async () => {
  await browser.close()
  server.closeAllConnections()
  server.close()
})

/** Runs the code like the agent does, as the body of an async function. */
async function runner() {
  const page = await browser.newPage()
  return async <Result>(code: string) =>
    (await new Function('page', `return (async () => {${code}\n})()`)(page)) as Result
}

const visits: Readonly<Record<string, Partial<Visit>>> = {
  '/': { status: 200, failure: null, isPage: true, title: 'Shop', challenges: [], hasPasswordField: false, media: 0 },
  '/moved': { status: 200, title: 'Prices', text: 'Nine' },
  '/late': { status: 200, text: 'late text' },
  '/widget': { status: 200, challenges: ['datadome'] },
  '/mitigated': { status: 403, challenges: ['header cf-mitigated'] },
  '/file': { status: 200, failure: null, isPage: false },
  '/text': { status: 200, isPage: false, text: 'plain text' },
  '/password': { status: 200, hasPasswordField: true },
  '/nowhere': { status: 404, text: 'not here' },
}
for (const [path, expected] of Object.entries(visits)) {
  test(`a visit to ${path} describes the page`, async () => {
    const run = await runner()

    const visit = Visit.parse(await run(openScript(`${site}${path}`)))

    assert.partialDeepStrictEqual(visit, expected)
  })
}

test('a visit without a page returns the name of the error', async () => {
  const run = await runner()

  const visit = Visit.parse(await run(openScript('http://127.0.0.1:1/')))

  assert.deepEqual([visit.status, visit.failure], [null, 'ERR_UNSAFE_PORT'])
})

test('a model gets the visible text of the page, and its steps are executed', async () => {
  const run = await runner()
  const view = () => run<{ title: string; text: string; elements: string[] }>(viewScript())
  const act = (action: Parameters<typeof actScript>[0]) => run<{ done: boolean; reason: string }>(actScript(action))
  await run(openScript(`${site}/`))

  const first = await view()
  const filled = await act({ action: 'fill', element: 1, text: 'tea "and" `more`' })
  await act({ action: 'click', element: 2 })
  const searched = await view()
  await act({ action: 'click', element: 0 })
  const followed = await view()
  const missing = await act({ action: 'click', element: 59 })
  await act({ action: 'open', url: `${site}/text` })
  const opened = await view()

  assert.deepEqual(first.elements, ['a: Prices', 'input text: Text', 'button submit: Search'])
  assert.deepEqual(filled, { done: true, reason: '' })
  assert.equal(searched.title, 'Searched tea "and" `more`')
  assert.deepEqual([followed.title, followed.text], ['Prices', 'Nine'])
  assert.deepEqual(missing, { done: false, reason: 'there is no such element' })
  assert.equal(opened.text, 'plain text')
})
