import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import openCdp from 'chrome-remote-interface'
import { chromium } from 'playwright-core'
import { Berth } from './testing/berth.ts'

const berth = await Berth.borrow()
after(() => berth[Symbol.asyncDispose]())
const client = await berth.client()
const session = await client.browsers.create({ headless: true, timeout_seconds: 600 })
const { host, pathname, search } = new URL(session.cdp_ws_url)
const token = new URLSearchParams(search).get('jwt') ?? ''
const bearer = { authorization: `Bearer ${token}` }

for (const isLocal of [false, true]) {
  test(`chrome-remote-interface connects to the websocket's address, with ${isLocal ? 'its own' : 'the server’s'} protocol`, async () => {
    // biome-ignore lint/nursery/useAwaitThenable: the rule looks at another form of its declaration, with a callback.
    const cdp = await openCdp({ target: session.cdp_ws_url, local: isLocal })

    const { product } = await cdp.Browser.getVersion()

    assert.match(product, /Chrome\//)
    await cdp.close()
  })
}

test('the public protocol describes the installed Chromium', async () => {
  const read = async (query: string) => {
    const answer = await fetch(`${berth.url}/s/${session.session_id}/json/protocol${query}`)
    const { domains } = (await answer.json()) as { domains: { domain: string; commands?: { name: string }[] }[] }
    return new Set(domains.flatMap(({ domain, commands = [] }) => commands.map(({ name }) => `${domain}.${name}`)))
  }

  const [published, own] = [await read(''), await read(search)]

  const missing = [...own].filter((command) => !published.has(command))
  assert.ok(own.size > 500)
  assert.ok(missing.length < own.size / 20, `not published: ${missing.join(', ')}`)
})

for (const [what, path, headers] of [
  ['Playwright from 1.53', `${pathname}/json/version/${search}`, {}],
  ['Playwright up to 1.52', `${pathname}${search}/json/version/`, {}],
  ['Puppeteer', `/json/version${search}`, {}],
  ['a client with headers', `${pathname}/json/version`, bearer],
  ['a client with an API key', `${pathname}/json/version`, { authorization: `Bearer ${berth.apiKey}` }],
] as const) {
  test(`discovery in the form of ${what} returns the browser`, async () => {
    const answer = await fetch(`${berth.url}${path}`, { headers })
    const { webSocketDebuggerUrl } = (await answer.json()) as { webSocketDebuggerUrl: string }

    const browser = await chromium.connectOverCDP(webSocketDebuggerUrl)

    assert.match(browser.version(), /^\d+\./)
    await browser.close()
  })
}

test('Playwright connects by the http address, and by the websocket with the token in a header', async () => {
  const byHttp = await chromium.connectOverCDP(session.cdp_ws_url.replace(/^ws/, 'http'))
  await byHttp.close()

  const byHeader = await chromium.connectOverCDP(`ws://${host}${pathname}`, { headers: bearer })
  await byHeader.close()
})

test('the real browser opens a websocket for the key "nil" of rod', async () => {
  const socket = connect(Number(new URL(berth.url).port), '127.0.0.1')
  socket.write(
    `GET ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
      'sec-websocket-version: 13\r\nsec-websocket-key: nil\r\n\r\n',
  )
  const [answer] = await once(socket, 'data')
  // `{"id":1,"method":"Browser.getVersion"}`, masked with zeros.
  const message = Buffer.from('{"id":1,"method":"Browser.getVersion"}')
  socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | message.length, 0, 0, 0, 0]), message]))
  const [frame] = await once(socket, 'data')

  assert.match(String(answer), /^HTTP\/1\.1 101 /)
  assert.match(String(frame), /"id":1,"result":\{/)
  socket.destroy()
})
