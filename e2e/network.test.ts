import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { after, test } from 'node:test'
import type { Page } from 'playwright-core'
import { WebSocketServer } from 'ws'
import { rounds } from './fault/testing/deep.ts'
import { Berth } from './testing/berth.ts'
import { BesideBare, outcomeOf } from './testing/browsers/beside-bare.ts'
import { hostName, startPages } from './testing/pages.ts'
import { onRequests, type RawServer, startRawServer } from './testing/servers/raw-server.ts'

/*
 * Compares what a page observes on the network in a session and in a bare Chromium at the same time. Bare Chromium is
 * the reference. Results stated in a table are for the reader.
 */

const mebibyte = 1024 * 1024
const pages = await startPages()
const beside = await BesideBare.start(await Berth.borrow(), {
  bareFlags: [`--unsafely-treat-insecure-origin-as-secure=${pages.url}`],
  chromePolicy: pages.trusted,
})
const servers: AsyncDisposable[] = []
after(async () => {
  await beside[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
  for (const server of servers) await server[Symbol.asyncDispose]()
})

async function serve(onConnection: (socket: Socket) => void): Promise<RawServer & { readonly url: string }> {
  const server = await startRawServer(onConnection)
  servers.push(server)
  return { ...server, url: `http://${hostName}:${server.port}` }
}

function answer(body: string, headers = ''): string {
  return `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`
}

test('slow responses arrive, whatever the server says of its connections', {
  timeout: 60_000,
}, async () => {
  const silence = 6_000
  const keepAlives = [
    'Keep-Alive: timeout=5\r\n',
    'Keep-Alive: timeout=5, max=100\r\n',
    '',
    'Keep-Alive: timeout=65\r\n',
  ]
  const sites = await Promise.all(
    keepAlives.map((headers) =>
      serve((socket) =>
        onRequests(socket, (method, path) => {
          if (path === '/paused') {
            socket.write(`HTTP/1.1 200 OK\r\n${headers}Content-Length: 10\r\n\r\nfirst`)
            setTimeout(() => socket.write('later'), silence)
          } else if (path === '/events') {
            socket.write(`HTTP/1.1 200 OK\r\n${headers}Content-Type: text/event-stream\r\n\r\n: open\n\n`)
            setTimeout(() => socket.write('data: later\n\n'), silence)
          } else if (path === '/') socket.write(answer('<title>quick</title>', headers))
          else setTimeout(() => socket.write(answer(`<title>${method}</title>`, headers)), silence)
        }),
      ),
    ),
  )
  const look = async (page: Page, url: string) => {
    await page.goto(url)
    const slow = await page.evaluate(async () => {
      const textOf = (path: string, method: string) =>
        fetch(path, { method }).then((response) => response.text(), String)
      const event = new Promise<string>((resolve) => {
        const source = new EventSource('/events')
        source.onmessage = ({ data }) => resolve(data)
        source.onerror = () => resolve('broken')
      })
      return Promise.all([textOf('/slow', 'GET'), textOf('/slow', 'POST'), textOf('/paused', 'GET'), event])
    })
    return slow
  }

  // Concurrently, because they wait.
  const [outcomes, navigations] = await beside.compare(async (page) => {
    const open = () => page.context().newPage()
    return Promise.all([
      Promise.all(sites.map(async ({ url }) => look(await open(), url))),
      Promise.all(sites.map(async ({ url }) => outcomeOf(await open(), `${url}/slow-page`))),
    ])
  })

  const right = ['<title>GET</title>', '<title>POST</title>', 'firstlater', 'later']
  assert.deepEqual(outcomes, [right, right, right, right])
  assert.deepEqual(navigations, ['200', '200', '200', '200'])
})

test('an unreachable server is a network error to pages, and a service worker shows its offline page', async () => {
  pages.serve(
    '/app',
    `<title>app</title><script>navigator.serviceWorker.register('/offline.js').then(() => navigator.serviceWorker.ready)</script>`,
  )
  pages.serve('/offline.js', (_request, response) => {
    response.setHeader('content-type', 'text/javascript')
    response.end(`addEventListener('activate', (event) => event.waitUntil(clients.claim()))
      addEventListener('fetch', (event) => {
        if (event.request.mode !== 'navigate') return
        event.respondWith(fetch(new URL(event.request.url).searchParams.get('to')).catch(() => new Response('<title>offline</title>', { headers: { 'content-type': 'text/html' } })))
      })`)
  })
  const gone = await serve(() => {})
  gone.stop()

  const outcome = await beside.compare(async (page) => {
    await page.goto(`${pages.url}/app`)
    await page.waitForFunction('navigator.serviceWorker.controller !== null')
    const requests = (await page.evaluate(`(async () => {
      const failed = (answer) => answer.then(({ status }) => 'answered ' + status, String)
      const posted = new Promise((resolve) => {
        const request = new XMLHttpRequest()
        request.open('POST', '${gone.url}')
        request.onload = () => resolve('loaded ' + request.status)
        request.onerror = () => resolve('error')
        request.send('x')
      })
      return Promise.all([failed(fetch('${gone.url}')), failed(fetch('${gone.url}', { mode: 'no-cors' })), posted])
    })()`)) as string[]
    const navigation = await outcomeOf(page, `${pages.url}/app?to=${encodeURIComponent(gone.url)}`)
    return [...requests, navigation, await page.title()]
  })

  const failed = 'TypeError: Failed to fetch'
  assert.deepEqual(outcome, [failed, failed, 'error', '200', 'offline'])
})

test('each cause of a failure has its own error, for http and https', async () => {
  const silent = await serve((socket) => socket.once('data', () => socket.end()))
  const breaking = await serve((socket) => socket.once('data', () => socket.resetAndDestroy()))
  const cutting = await serve((socket) =>
    socket.once('data', () => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')
      // A reset discards what a busy machine has not read yet.
      setTimeout(() => socket.resetAndDestroy(), 3_000)
    }),
  )
  const gone = await serve(() => {})
  gone.stop()
  const table: readonly (readonly [what: string, address: string, http: string, https: string])[] = [
    ['no such name', 'no-such-name.invalid', 'ERR_NAME_NOT_RESOLVED', 'ERR_NAME_NOT_RESOLVED'],
    ['nobody listens', `${hostName}:${gone.port}`, 'ERR_CONNECTION_REFUSED', 'ERR_CONNECTION_REFUSED'],
    ['an end without a word', `${hostName}:${silent.port}`, 'ERR_EMPTY_RESPONSE', 'ERR_CONNECTION_CLOSED'],
    ['a reset without a word', `${hostName}:${breaking.port}`, 'ERR_CONNECTION_RESET', 'ERR_CONNECTION_RESET'],
    ['nobody listens on localhost', 'localhost:9', 'ERR_UNSAFE_PORT', 'ERR_UNSAFE_PORT'],
  ]

  const outcomes = await beside.compare(async (page) => {
    const found: string[][] = []
    for (const [what, address] of table) {
      found.push([what, await outcomeOf(page, `http://${address}/`), await outcomeOf(page, `https://${address}/`)])
    }
    return found
  })
  const cut = await beside.compare(async (page) => {
    await page.goto(pages.url)
    return page.evaluate(
      (url) => fetch(url, { mode: 'no-cors' }).then((response) => response.type, String),
      cutting.url,
    )
  })

  assert.deepEqual(
    outcomes,
    table.map(([what, , http, https]) => [what, http, https]),
  )
  assert.equal(cut, 'opaque')
})

const malformedResponses: Readonly<Record<string, string>> = {
  'the same length twice': 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok',
  'a list of lengths': 'HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok',
  'an empty length': 'HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\nok',
  'a line without a colon': 'HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 2\r\n\r\nok',
  'a header without a name': 'HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 2\r\n\r\nok',
  'a space in a name': 'HTTP/1.1 200 OK\r\nX Y: z\r\nContent-Length: 2\r\n\r\nok',
  'a space before the colon': 'HTTP/1.1 200 OK\r\nX-Y : z\r\nContent-Length: 2\r\n\r\nok',
  'a status line in lower case': 'http/1.1 200 ok\r\nContent-Length: 2\r\n\r\nok',
  'a status line twice': 'HTTP/1.1 200 OK\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  'two spaces in the status line': 'HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok',
  'a status line of HTTP/2': 'HTTP/2 200\r\nContent-Length: 2\r\n\r\nok',
  'bare line feeds': 'HTTP/1.1 200 OK\nContent-Length: 2\n\nok',
  'no reason': 'HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok',
  'HTTP/1.0': 'HTTP/1.0 200 OK\r\n\r\nok',
  'UTF-8 in a header': 'HTTP/1.1 200 OK\r\nX-Y: grüße\r\nContent-Length: 2\r\n\r\nok',
  'a folded header': 'HTTP/1.1 200 OK\r\nX-Y: a\r\n b\r\nContent-Length: 2\r\n\r\nok',
  'chunks with a length':
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n2\r\nok\r\n0\r\n\r\n',
  'early hints first': 'HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
  'a header of 200 KB': `HTTP/1.1 200 OK\r\nX-Y: ${'y'.repeat(200_000)}\r\nContent-Length: 2\r\n\r\nok`,
  'status 999': 'HTTP/1.1 999 Odd\r\nContent-Length: 2\r\n\r\nok',
}

test('malformed responses that browsers accept are accepted', async () => {
  const texts = Object.values(malformedResponses)
  const site = await serve((socket) =>
    onRequests(socket, (_method, path) => socket.end(texts[Number(path.slice(1))] ?? answer(''))),
  )

  const outcomes = await beside.compare(async (page) => {
    const found: Record<string, string> = {}
    for (const [index, name] of Object.keys(malformedResponses).entries()) {
      const outcome = await outcomeOf(page, `${site.url}/${index}`)
      found[name] = `${outcome} ${await page.textContent('body')}`
    }
    return found
  })

  for (const [name, outcome] of Object.entries(outcomes)) {
    assert.equal(outcome, name === 'status 999' ? '999 ok' : '200 ok', name)
  }
})

test('another site loads while hundreds of connections stay open', { timeout: 120_000 }, async () => {
  const [streamSites, streamsEach, webSockets] = [44, 5, 250]
  const streams = await Promise.all(
    Array.from({ length: streamSites }, () =>
      serve((socket) =>
        onRequests(socket, () =>
          socket.write(
            'HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n',
          ),
        ),
      ),
    ),
  )
  const echo = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(echo, 'listening')
  const { port } = echo.address() as AddressInfo

  const outcome = await beside.compare(async (page) => {
    await page.goto(pages.url)
    const opened = await page.evaluate(
      async ({ urls, each }) => {
        const sources = urls.flatMap((url) =>
          Array.from({ length: each }, (_, index) => new EventSource(`${url}/${index}`)),
        )
        const heard = sources.map((source) => new Promise((resolve) => source.addEventListener('message', resolve)))
        await Promise.all(heard)
        return heard.length
      },
      { urls: streams.map(({ url }) => url), each: streamsEach },
    )
    const beside = await page.context().newPage()
    const other = await outcomeOf(beside, `http://${hostName}:${pages.port}/`)
    const connected = await beside.evaluate(
      async ({ url, count }) => {
        const sockets = Array.from({ length: count }, () => new WebSocket(url))
        await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.addEventListener('open', resolve))))
        return sockets.filter(({ readyState }) => readyState === WebSocket.OPEN).length
      },
      { url: `ws://${hostName}:${port}/`, count: webSockets },
    )
    return [opened, other, connected]
  })

  assert.deepEqual(outcome, [streamSites * streamsEach, '200', webSockets])
  for (const client of echo.clients) client.terminate()
  echo.close()
})

test('large bodies arrive complete, and a refusal during an upload is read', { timeout: 300_000 }, async () => {
  const downloadBytes = rounds({ short: 32, deep: 1_500 }) * mebibyte
  const uploadBytes = rounds({ short: 10, deep: 100 }) * mebibyte
  const part = Buffer.alloc(mebibyte, 'x')
  pages.serve('/large', (_request, response) => {
    let left = downloadBytes / mebibyte
    const write = () => {
      while (left > 0) {
        left -= 1
        if (!response.write(part)) return response.once('drain', write)
      }
      response.end()
    }
    write()
  })
  pages.serve('/upload', (request, response) => {
    let received = 0
    request.on('data', (chunk: Buffer) => {
      received += chunk.length
    })
    request.on('end', () => response.end(String(received)))
  })
  pages.serve('/refuse', (request, response) => {
    response.writeHead(413, { connection: 'close' }).end('big')
    // Long after the response has been read, also on a busy machine: a reset discards what has not.
    request.once('data', () => setTimeout(() => request.socket.resetAndDestroy(), 5_000).unref())
  })

  const outcome = await beside.compare(async (page) => {
    await page.goto(pages.url)
    return page.evaluate(async (bytes) => {
      const reader = (await fetch('/large')).body?.getReader()
      let downloaded = 0
      for (let next = await reader?.read(); next && !next.done; next = await reader?.read())
        downloaded += next.value.length
      const post = async (path: string, size: number) => {
        const response = await fetch(path, { method: 'POST', body: new Blob([new Uint8Array(size)]) })
        return `${response.status} ${await response.text()}`
      }
      const uploaded = await post('/upload', bytes)
      const refused = []
      for (let attempt = 0; attempt < 10; attempt += 1) refused.push(await post('/refuse', 20 * 1024 * 1024))
      return [downloaded, uploaded, [...new Set(refused)].join()]
    }, uploadBytes)
  })

  assert.deepEqual(outcome, [downloadBytes, `200 ${uploadBytes}`, '413 big'])
})
