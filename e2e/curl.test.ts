import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, suite, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { APIError } from '@onkernel/sdk'
import { chromium } from 'playwright-core'
import puppeteer from 'puppeteer-core'
import { Berth } from './testing/berth.ts'
import { BidiClient } from './testing/browsers/bidi.ts'
import { hostName } from './testing/pages.ts'
import { relayToLocalhost } from './testing/servers/localhost-relay.ts'

interface Seen {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: Buffer
}

/** The requests of the site, the newest last. */
const seen: Seen[] = []
const big = randomBytes(1024 * 1024)
const bigParts = 64
let writtenParts = 0
/** Resolves with the next response that is left unfinished. */
let unfinished = Promise.withResolvers<void>()

const site = createServer(async (request, response) => {
  const body = Buffer.concat(await Array.fromAsync(request as AsyncIterable<Buffer>))
  const { method = '', url = '', headers } = request
  seen.push({ method, url, headers, body })
  const { pathname, searchParams } = new URL(url, 'http://site')
  switch (pathname) {
    case '/cookies':
      response.setHeader('set-cookie', ['plain=1; Path=/', 'strict=2; SameSite=Strict; HttpOnly; Path=/'])
      response.setHeader('x-two', ['a', 'b'])
      return response.end('set')
    case '/redirect':
      response.writeHead(Number(searchParams.get('status')), {
        location: searchParams.get('to') ?? '',
        'set-cookie': 'hop=3',
      })
      return response.end('moved')
    case '/login':
      return response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end('who are you?')
    case '/file':
      return response.writeHead(200, { 'content-disposition': 'attachment; filename=x.bin' }).end('file')
    case '/zipped':
      return response
        .writeHead(200, { 'content-encoding': 'gzip', 'content-type': 'text/plain' })
        .end(gzipSync('zipped'))
    case '/odd':
      return response.writeHead(207, { 'content-type': 'text/html' }).end(Buffer.from([0x41, 0xff, 0xfe, 0x00, 0x42]))
    case '/big':
      response.writeHead(200, { 'content-type': 'application/octet-stream' })
      for (let part = 0; part < bigParts; part++) {
        writtenParts = part
        if (!response.write(big)) await once(response, 'drain')
      }
      return response.end()
    case '/events': {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: one\n\n')
      await unfinished.promise
      return response.end('data: two\n\n')
    }
    case '/never':
      response.once('close', unfinished.resolve)
      return
    case '/page':
      return response.writeHead(200, { 'content-type': 'text/html' }).end('<title>page</title>')
    case '/worker.js':
      response.writeHead(200, { 'content-type': 'text/javascript' })
      return response.end("onfetch = (event) => event.respondWith(new Response('worker'))")
    case '/hostile':
      response.setHeader('set-cookie', 'mine=1')
      response.setHeader('content-security-policy', "default-src 'self'")
      response.setHeader('access-control-allow-origin', 'https://else.test')
      response.setHeader('clear-site-data', '"*"')
      return response.end('<script>x</script>')
    default:
      return response.end(`${method} ${pathname}`)
  }
})
site.listen(0, '127.0.0.1')
await once(site, 'listening')
const { port } = site.address() as AddressInfo
const origin = `http://${hostName}:${port}`

const berth = await Berth.borrow()
after(async () => {
  await berth[Symbol.asyncDispose]()
  site.closeAllConnections()
  site.close()
})
const overApi = await berth.client({ directly: '' })
// The client's default routes curl directly to the session.
const direct = await berth.client()
const session = await direct.browsers.create({
  headless: true,
  chrome_policy: { OverrideSecurityRestrictionsOnInsecureOrigin: [origin] },
})
const id = session.session_id
await relayToLocalhost(direct, id, port)
const token = new URL(session.cdp_ws_url).searchParams.get('jwt')
const rawUrl = (target: string) => `${session.base_url}/curl/raw?url=${encodeURIComponent(target)}&jwt=${token}`

for (const [way, client] of Object.entries({ 'over the API': overApi, directly: direct })) {
  suite(`curl, ${way}`, { timeout: 60_000 }, () => {
    test('a request is sent as the browser, with its cookies, and the response changes them', async () => {
      await client.browsers.curl(id, { url: `${origin}/cookies` })
      const set = await client.browsers.curl(id, { url: `${origin}/cookies` })
      const browser = await chromium.connectOverCDP(session.cdp_ws_url)
      const [context] = browser.contexts()
      const jar = await context?.cookies(origin)
      const agent = await context?.pages()[0]?.evaluate('navigator.userAgent')
      await browser.close()

      assert.deepEqual(set.headers['set-cookie'], ['plain=1; Path=/', 'strict=2; SameSite=Strict; HttpOnly; Path=/'])
      assert.deepEqual(set.headers['x-two'], ['a', 'b'])
      assert.deepEqual([set.status, set.body], [200, 'set'])
      assert.ok(set.duration_ms > 0)
      assert.deepEqual(
        jar
          ?.map(({ name }) => name)
          .filter((name) => name !== 'hop')
          .sort(),
        ['plain', 'strict'],
      )
      const asked = seen.at(-1)?.headers
      assert.match(asked?.cookie ?? '', /plain=1; strict=2/)
      assert.equal(asked?.['user-agent'], agent)
      assert.match(String(asked?.['sec-ch-ua']), /Chromium/)
      assert.doesNotMatch(JSON.stringify(asked), /stainless|jwt|sk_/i)
    })

    test('every method reaches the site, with headers and body', async () => {
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const) {
        const hasBody = method !== 'GET' && method !== 'HEAD'
        const answer = await client.browsers.curl(id, {
          ...{ url: `${origin}/echo?q=1#part`, method, ...(hasBody && { body: 'Grüße\0\n' }) },
          headers: {
            'X-Mine': 'yes',
            'user-agent': 'mine/1',
            Cookie: 'own=1',
            connection: 'close',
            Authorization: 'Bearer t',
          },
        })
        const asked = seen.at(-1)

        assert.deepEqual([answer.status, answer.body], [200, method === 'HEAD' ? '' : `${method} /echo`])
        assert.deepEqual([asked?.method, asked?.url], [method, '/echo?q=1'])
        assert.equal(String(asked?.body), hasBody ? 'Grüße\0\n' : '')
        const { 'x-mine': mine, 'user-agent': agent, cookie, authorization } = asked?.headers ?? {}
        assert.deepEqual([mine, agent, cookie, authorization], ['yes', 'mine/1', 'own=1', 'Bearer t'])
      }
    })

    test('redirects are followed, and credentials stay with their origin', async () => {
      const go = (status: number, to: string, method: 'GET' | 'POST' | 'PUT' = 'POST') =>
        client.browsers.curl(id, {
          ...{ url: `${origin}/redirect?status=${status}&to=${encodeURIComponent(to)}`, method },
          ...{
            headers: { authorization: 'Basic x', 'content-type': 'text/plain' },
            ...(method !== 'GET' && { body: 'b' }),
          },
        })
      const outcome = () => `${seen.at(-1)?.method} ${seen.at(-1)?.body} ${seen.at(-1)?.headers.authorization}`

      assert.equal((await go(302, '/echo')).body, 'GET /echo')
      assert.equal(outcome(), 'GET  Basic x')
      assert.equal((await go(307, '/echo')).body, 'POST /echo')
      assert.equal(outcome(), 'POST b Basic x')
      assert.equal((await go(303, '/echo', 'PUT')).body, 'GET /echo')
      await go(308, `http://localhost:${port}/echo`, 'PUT')
      assert.equal(outcome(), 'PUT b undefined')
      const loop = `/redirect?status=302&to=${encodeURIComponent(`${origin}/loop`)}`
      assert.equal((await client.browsers.curl(id, { url: `${origin}${loop}` })).body, 'GET /loop')
      assert.deepEqual(await failure(go(302, 'file:///etc/passwd')), [502, 'curl_failed', -311, 'ERR_UNSAFE_REDIRECT'])
    })

    test('every kind of response is returned: statuses, files, binary, compressed', async () => {
      const binary = await client.browsers.curl(id, { url: `${origin}/odd`, response_encoding: 'base64' })
      const answers = await Promise.all(
        ['/login', '/file', '/zipped'].map((path) => client.browsers.curl(id, { url: `${origin}${path}` })),
      )

      assert.deepEqual([binary.status, binary.body], [207, 'Qf/+AEI='])
      assert.deepEqual(
        answers.map(({ status, body }) => [status, body]),
        [
          [401, 'who are you?'],
          [200, 'file'],
          [200, 'zipped'],
        ],
      )
    })

    test('a network failure is reported with the name that Chromium gives it', async () => {
      const fail = (url: string, options: object = {}) => failure(client.browsers.curl(id, { url, ...options }))

      assert.deepEqual(await fail('http://127.0.0.1:9/'), [502, 'curl_failed', -312, 'ERR_UNSAFE_PORT'])
      assert.deepEqual(await fail('http://127.0.0.1:9222/json'), [502, 'curl_failed', -101, 'ERR_CONNECTION_RESET'])
      for (const scheme of ['http', 'https']) {
        const refused = [502, 'curl_failed', -102, 'ERR_CONNECTION_REFUSED']
        assert.deepEqual(await fail(`${scheme}://127.0.0.1:9223/`), refused)
        const absent = [502, 'curl_failed', -105, 'ERR_NAME_NOT_RESOLVED']
        assert.deepEqual(await fail(`${scheme}://no-such-name.invalid/`), absent)
        const forbidden = [502, 'curl_failed', -109, 'ERR_ADDRESS_UNREACHABLE']
        assert.deepEqual(await fail(`${scheme}://169.254.169.254/`), forbidden)
      }
      assert.deepEqual(await fail(`https://${hostName}:${port}/`), [502, 'curl_failed', -107, 'ERR_SSL_PROTOCOL_ERROR'])
      unfinished = Promise.withResolvers()
      assert.deepEqual(await fail(`${origin}/never`, { timeout_ms: 1000 }), [502, 'curl_failed', -7, 'ERR_TIMED_OUT'])
      await unfinished.promise
      for (const wrong of [
        ...[
          { url: 'file:///etc/passwd' },
          { url: 'http://' },
          { timeout_ms: 999 },
          { method: 'TRACE' },
          { follow: true },
        ],
        ...[{ headers: { 'a b': 'x' } }, { headers: { a: 'x\r\ny: z' } }, { headers: { Host: 'else' } }],
      ])
        assert.equal((await fail(`${origin}/echo`, wrong))[0], 400, JSON.stringify(wrong))
    })
  })
}

test('fetch sends the request unchanged, and returns the response unchanged', async () => {
  const posted = await direct.browsers.fetch(id, `${origin}/echo`, {
    ...{ method: 'POST', body: 'streamed', headers: { 'x-mine': 'yes', 'content-type': 'text/plain' } },
  })
  const asked = seen.at(-1)
  const plain = await direct.browsers.fetch(id, `${origin}/cookies`)
  const got = seen.at(-1)
  const zipped = await direct.browsers.fetch(id, `${origin}/zipped`)

  assert.deepEqual([posted.status, await posted.text()], [200, 'POST /echo'])
  assert.deepEqual(
    [String(asked?.body), asked?.headers['x-mine'], asked?.headers['content-type']],
    ['streamed', 'yes', 'text/plain'],
  )
  assert.match(asked?.headers['user-agent'] ?? '', /^Mozilla/)
  assert.match(asked?.headers['accept-language'] ?? '', /^en-US/)
  assert.equal(got?.headers['content-type'], undefined)
  assert.doesNotMatch(JSON.stringify([asked, got]), /stainless|kernel|forwarded|x-request-id/i)
  assert.equal(plain.headers.get('x-two'), 'a, b')
  assert.deepEqual(plain.headers.getSetCookie(), ['plain=1; Path=/', 'strict=2; SameSite=Strict; HttpOnly; Path=/'])
  assert.equal(await zipped.text(), 'zipped')
  await assert.rejects(direct.browsers.fetch(id, `${origin}/login`), { status: 401 })
  const before = seen.length
  const broken = await fetch(rawUrl(`${origin}/redirect?status=500&to=`))
  assert.deepEqual([broken.status, broken.headers.get('x-should-retry')], [500, 'false'])
  assert.equal(seen.length, before + 1)
})

test('a body of any size is streamed at the speed of its reader', async () => {
  const hash = createHash('sha256')
  const expected = createHash('sha256')
  for (let part = 0; part < bigParts; part++) expected.update(big)
  writtenParts = 0
  const response = await direct.browsers.fetch(id, `${origin}/big`)
  // While nobody reads, the site stops sending. Each check takes as long as a request.
  for (let before = -1; before !== writtenParts; ) {
    before = writtenParts
    await direct.browsers.curl(id, { url: `${origin}/echo` })
  }
  const writtenUnread = writtenParts
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) hash.update(chunk)

  assert.ok(writtenUnread < bigParts / 2, `${writtenUnread} MiB wait for the reader`)
  assert.equal(hash.digest('hex'), expected.digest('hex'))
  assert.equal((await failure(direct.browsers.curl(id, { url: `${origin}/big` })))[0], 502)
})

test('an endless response is streamed, and ends when the caller disconnects', async () => {
  unfinished = Promise.withResolvers()
  const events = await direct.browsers.fetch(id, `${origin}/events`)
  const reader = (events.body as ReadableStream<Uint8Array>).getReader()
  const readEvent = async () => {
    let event = ''
    while (!event.endsWith('\n\n')) event += Buffer.from((await reader.read()).value ?? [])
    return event
  }
  const first = await readEvent()
  unfinished.resolve()
  const second = await readEvent()
  unfinished = Promise.withResolvers()
  const leaving = new AbortController()
  const left = fetch(rawUrl(`${origin}/never`), { signal: leaving.signal })
  while (seen.at(-1)?.url !== '/never') await direct.browsers.retrieve(id)
  leaving.abort()
  await assert.rejects(left)
  await unfinished.promise

  assert.equal(first, 'data: one\n\n')
  assert.equal(second, 'data: two\n\n')
})

test('many simultaneous requests are all answered', async () => {
  const answers = await Promise.all(
    Array.from({ length: 24 }, (_, index) => direct.browsers.curl(id, { url: `${origin}/echo/${index}` })),
  )

  assert.deepEqual(
    answers.map(({ body }) => body),
    answers.map((_, index) => `GET /echo/${index}`),
  )
})

test('a response of a site has no access to the origin of berth', async () => {
  const page = await fetch(rawUrl(`${origin}/hostile`), {
    headers: { origin: 'https://dashboard.test', cookie: 'berth=1' },
  })
  const asked = seen.at(-1)?.headers
  // Over plain HTTP a browser sends no more headers than this. fetch would send more.
  const visited = httpRequest(rawUrl(`${origin}/hostile`), { headers: { 'user-agent': 'Mozilla/5.0 (X11)' } }).end()
  const [visit] = (await once(visited, 'response')) as [IncomingMessage]
  visit.resume()
  const program = await fetch(rawUrl(`${origin}/hostile`))

  for (const headers of [page.headers, new Headers(visit.headers as Record<string, string>)]) {
    for (const name of ['set-cookie', 'clear-site-data']) assert.equal(headers.get(name), null, name)
    assert.equal(headers.get('content-security-policy'), 'sandbox')
  }
  assert.equal(page.headers.get('access-control-allow-origin'), '*')
  assert.equal(asked?.origin, undefined)
  assert.doesNotMatch(asked?.cookie ?? '', /berth/)
  assert.deepEqual(program.headers.getSetCookie(), ['mine=1'])
  assert.equal(program.headers.get('content-security-policy'), "sandbox, default-src 'self'")
  assert.equal(program.headers.get('access-control-allow-origin'), '*')
})

test('tabs and clients neither see nor delay it', async () => {
  const headful = await direct.browsers.create({ headless: false })
  const browser = await chromium.connectOverCDP(headful.cdp_ws_url)
  const other = await puppeteer.connect({ browserWSEndpoint: headful.cdp_ws_url, defaultViewport: null })
  const bidi = await BidiClient.open(headful.webdriver_ws_url)
  await bidi.send('session.new', { capabilities: {} })
  await bidi.send('session.subscribe', { events: ['browsingContext.contextCreated'] })
  const told = bidi.events.length
  const [context] = browser.contexts()
  const [page] = context?.pages() ?? []
  const appeared: string[] = []
  context?.on('page', (opened) => appeared.push(opened.url()))
  await page?.setContent("<input id=a><script>seen = []; onblur = () => seen.push('blur')</script>")
  await page?.focus('#a')
  const answer = await direct.browsers.curl(headful.session_id, { url: `${origin}/echo`, timeout_ms: 10_000 })

  assert.equal(answer.status, 200)
  assert.deepEqual(appeared, [])
  assert.equal(context?.pages().length, 1)
  assert.equal((await other.pages()).length, 1)
  assert.equal((await bidi.send('browsingContext.getTree')).contexts.length, 1)
  assert.equal(bidi.events.length, told)
  assert.deepEqual(await page?.evaluate('[seen, document.hasFocus(), document.visibilityState]'), [[], true, 'visible'])
  bidi.socket.close()
  await other.disconnect()
  await browser.close()
})

test('the service worker of a site does not answer the request', async () => {
  const browser = await chromium.connectOverCDP(session.cdp_ws_url)
  const page = await browser.contexts()[0]?.newPage()
  const local = `http://localhost:${port}`
  await page?.goto(`${local}/page`)
  await page?.evaluate("navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready)")
  const byWorker = await page?.goto(`${local}/echo`)
  const answered = await byWorker?.text()
  const byCurl = await direct.browsers.curl(id, { url: `${local}/echo` })
  await page?.close()
  await browser.close()

  assert.equal(answered, 'worker')
  assert.equal(byCurl.body, 'GET /echo')
})

test('the raw form needs the token of the session and a URL', async () => {
  const statusOf = async (url: string) => (await fetch(url)).status

  assert.equal(await statusOf(`${session.base_url}/curl/raw?url=${origin}`), 401)
  assert.equal(await statusOf(`${session.base_url}/curl/raw?jwt=${token}`), 400)
  assert.equal(await statusOf(`${session.base_url}/curl/raw?jwt=${token}&url=ftp://x/`), 400)
  assert.equal(await statusOf(`${rawUrl(origin)}&timeout_ms=1`), 400)
  const head = await fetch(rawUrl(`${origin}/echo`), { method: 'HEAD' })
  assert.deepEqual([head.status, seen.at(-1)?.method], [200, 'HEAD'])
  assert.equal((await berth.request(`/browsers/${id}/curl/raw?url=${origin}`)).status, 404)
})

async function failure(call: Promise<unknown>): Promise<unknown[]> {
  const error = await call.then(
    () => assert.fail('it was not refused'),
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof APIError, String(error))
  const { code, net_error: number, net_error_name: name } = error.error as Record<string, unknown>
  return name === undefined ? [error.status, code] : [error.status, code, number, name]
}
