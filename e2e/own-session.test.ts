import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Berth } from './testing/berth.ts'
import { hostName } from './testing/pages.ts'

const berth = await Berth.borrow()
const client = await berth.client()
const [own, other] = await Promise.all([
  client.browsers.create({ headless: true, timeout_seconds: 120 }),
  client.browsers.create({ headless: true, timeout_seconds: 120 }),
])
after(() => berth[Symbol.asyncDispose]())

/** The URL as seen from inside a session. */
function inside(url: string): string {
  return url.replace('127.0.0.1', hostName)
}

const request =
  'fetch(process.argv[1], { headers: JSON.parse(process.argv[2]) }).then(({ status }) => console.log(status))'

async function statusOf(url: string, headers: object = {}): Promise<number> {
  const { stdout_b64 } = await client.browsers.process.exec(own.session_id, {
    command: '/opt/berth/node',
    args: ['-e', request, inside(url), JSON.stringify(headers)],
  })
  return Number(Buffer.from(stdout_b64 ?? '', 'base64').toString())
}

test('a program in a session reaches its own session, and nothing else of berth', async () => {
  const search = new URL(own.cdp_ws_url).search
  const { base_url: base = '' } = own
  const key = { authorization: `Bearer ${berth.apiKey}` }

  assert.equal(await statusOf(`${base}/json/version${search}`), 200)
  assert.equal(await statusOf(`${base}/fs/file_info${search}&path=/tmp`), 200)
  assert.equal(await statusOf(`${base}/json/version`), 401)
  assert.equal(await statusOf(`${other.base_url}/json/version${new URL(other.cdp_ws_url).search}`), 403)
  assert.equal(await statusOf(`${berth.url}/browsers`, key), 403)
  assert.equal(await statusOf(`${berth.url}/docs`), 403)
})

test('a page of a session controls its own browser', async () => {
  const code = `
    await page.goto('about:blank')
    return page.evaluate(async (url) => {
      const socket = new WebSocket(url)
      await new Promise((resolve, reject) => Object.assign(socket, { onopen: resolve, onerror: reject }))
      socket.send('{"id":1,"method":"Browser.getVersion"}')
      return new Promise((resolve) => { socket.onmessage = ({ data }) => resolve(JSON.parse(data).result.product) })
    }, ${JSON.stringify(inside(own.cdp_ws_url))})`

  const { result, error } = await client.browsers.playwright.execute(own.session_id, { code })

  assert.match(String(result), /^Chrome\//, error ?? 'no product')
})
