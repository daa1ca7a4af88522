import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { chromium, type Page, type Request } from 'playwright-core'
import { Berth } from './testing/berth.ts'
import { launchDesktopBrowser } from './testing/browsers/desktop-browser.ts'

const berth = await Berth.borrow()
const client = await berth.client()
after(() => berth[Symbol.asyncDispose]())
const { session_id: id, cdp_ws_url } = await client.browsers.create({ headless: true, timeout_seconds: 300 })
const other = await client.browsers.create({ headless: true, timeout_seconds: 300 })

async function frontendUrl(): Promise<string> {
  const list = await fetch(cdp_ws_url.replace(/^ws/, 'http').replace('/cdp?', '/json/list?'))
  const [target] = (await list.json()) as { devtoolsFrontendUrl: string }[]
  return String(target?.devtoolsFrontendUrl)
}

test('DevTools is served below the session, only with its token, as a page without an origin', async () => {
  const url = await frontendUrl()
  assert.ok(url.startsWith(`${berth.url}/s/${id}/devtools/inspector.html?jwt=`), url)
  const page = await fetch(url)
  const html = await page.text()
  const base = /<base href="([^"]+)">/.exec(html)?.[1] ?? ''
  const script = /src="(\.?\/?entrypoints[^"]+\.js)"/.exec(html)?.[1] ?? ''

  const file = await fetch(new URL(script, base))

  assert.equal(page.status, 200)
  assert.match(String(page.headers.get('content-type')), /^text\/html/)
  assert.equal(file.status, 200)
  assert.match(String(file.headers.get('content-type')), /^text\/javascript/)
  for (const { headers } of [page, file]) {
    assert.match(String(headers.get('content-security-policy')), /^sandbox(?!.*allow-same-origin)/)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
  }
  const otherToken = new URL(other.cdp_ws_url).searchParams.get('jwt') ?? ''
  const statusOf = async (address: string) => (await fetch(address)).status
  const plain = `${berth.url}/s/${id}/devtools/inspector.html`
  assert.equal(await statusOf(plain), 401)
  assert.equal(await statusOf(`${plain}?jwt=${otherToken}`), 401)
  assert.equal(await statusOf(`${base.replace(/[^/]+\/$/, '')}${otherToken}/inspector.html`), 401)
  assert.equal(await statusOf(`${base}none.js`), 404)
})

test('a browser opens DevTools and sees the page of the session', async () => {
  const session = await chromium.connectOverCDP(cdp_ws_url)
  await session.contexts()[0]?.pages()[0]?.setContent('<h1>Seen from outside</h1>')
  const browser = await launchDesktopBrowser()
  try {
    const url = await frontendUrl()
    let isShown = false

    while (!isShown) isShown = await openUntilNetworkChange(await browser.newPage(), url, 'Seen from outside')
  } finally {
    await browser.close()
    await session.close()
  }
})

/**
 * Resolves with whether DevTools shows the text. In a cluster, each pod adds an interface to this host. Chromium then
 * aborts the requests of all pages, and DevTools requests no file again.
 */
async function openUntilNetworkChange(page: Page, url: string, text: string): Promise<boolean> {
  const limit = { timeout: 60_000 }
  const isNetworkChange = (request: Request) => request.failure()?.errorText === 'net::ERR_NETWORK_CHANGED'
  const showText = async () => {
    await page.goto(url)
    await page.getByText(text).first().waitFor(limit)
    return true
  }
  return Promise.any([
    page.waitForEvent('requestfailed', { predicate: isNetworkChange, ...limit }).then(() => false),
    showText(),
  ])
}
