import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import puppeteer from 'puppeteer-core'
import { Berth } from './testing/berth.ts'
import { BesideBare, outcomeOf } from './testing/browsers/beside-bare.ts'
import { hostName, startPages } from './testing/pages.ts'
import { type ExitProxy, startExitProxy } from './testing/servers/exit-proxy.ts'
import { relayToLocalhost } from './testing/servers/localhost-relay.ts'
import { onRequests, startRawServer } from './testing/servers/raw-server.ts'

const pages = await startPages()
const beside = await BesideBare.start(await Berth.borrow())
const client = await beside.berth.client()
const { sessionId } = beside
after(async () => {
  await beside[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})

async function shell(script: string): Promise<string> {
  const { stdout_b64 = '', stderr_b64 = '' } = await client.browsers.process.exec(sessionId, {
    command: '/bin/bash',
    args: ['-c', script],
    timeout_sec: 30,
  })
  return `${Buffer.from(stdout_b64, 'base64')}${Buffer.from(stderr_b64, 'base64')}`.trim()
}

test('the browser reaches servers of its own session at localhost, but not berth', async () => {
  await relayToLocalhost(client, sessionId, pages.port)
  const page = await beside.session.newPage()

  for (const host of ['localhost', '127.0.0.1', 'any.localhost']) {
    assert.equal(await outcomeOf(page, `http://${host}:${pages.port}/`), '200', host)
    assert.equal(await page.evaluate('isSecureContext'), true)
  }
  const portsOfOurs = await shell(`awk 'NR > 1 && $4 == "0A" { print $2 }' /proc/net/tcp | cut -d: -f2 | sort -u`)
  const ports = portsOfOurs.split('\n').map((port) => Number.parseInt(port, 16))
  assert.ok(ports.includes(9222), 'programs find DevTools where they expect it')
  assert.equal(JSON.parse(await shell('curl -s http://127.0.0.1:9222/json/version')).Browser.split('/')[0], 'Chrome')
  const asking = await beside.session.newPage()
  await asking.goto(pages.url)
  for (const port of [...ports, 9223, 10001].filter((port) => port !== pages.port)) {
    for (const host of ['127.0.0.1', 'localhost', '127.0.0.2', '[::1]', '0.0.0.0', '[::ffff:127.0.0.1]', '192.0.0.2']) {
      const outcome = await outcomeOf(page, `http://${host}:${port}/json/version`)
      assert.match(outcome, /^ERR_(UNSAFE_PORT|CONNECTION_(REFUSED|RESET)|ADDRESS_INVALID)$/, `${host}:${port}`)
    }
    const fetched = `fetch('http://127.0.0.1:${port}/json/version', { mode: 'no-cors' }).then(() => 'answered', String)`
    assert.equal(await asking.evaluate(fetched), 'TypeError: Failed to fetch')
    const socket = `new Promise((resolve) => { const socket = new WebSocket('ws://127.0.0.1:${port}/devtools/browser'); socket.onopen = () => resolve('opened'); socket.onerror = () => resolve('failed') })`
    if (port !== 1) assert.equal(await asking.evaluate(socket), 'failed')
  }
  await Promise.all([page.close(), asking.close()])
})

test('programs reach the same hosts as pages, by TCP and by name, without a proxy', async () => {
  await using banner = await startRawServer((socket) => socket.write('220 welcome\r\n'))
  const perl = (host: string, port: number) =>
    `perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(PeerAddr => "${host}", PeerPort => ${port}, Timeout => 20) or die "$!\\n"; print $s->getline'`

  assert.equal(await shell(perl(hostName, banner.port)), '220 welcome')
  assert.equal(await shell(`getent ahostsv4 ${hostName} | awk '{ print $2; exit }'`), 'STREAM')
  assert.equal(await shell(`getent hosts no-such-name.invalid; echo $?`), '2')
  assert.match(await shell(`curl -s ${pages.url}/`), /<h1>Home/)
  assert.match(await shell(perl('169.254.169.254', 80)), /No route to host/)
  banner.stop()
  assert.match(await shell(perl(hostName, banner.port)), /Connection refused/)
})

test('a context with its own proxy uses it', async () => {
  await using first = await startExitProxy({ name: 'first' })
  await using second = await startExitProxy({ name: 'second', credentials: { username: 'user', password: 'pass' } })
  const address = ({ port }: ExitProxy) => `http://${hostName}:${port}`
  const titles = async (kind: 'session' | 'bare') => {
    const found: string[] = []
    for (const proxy of [
      { server: address(first) },
      { server: address(second), username: 'user', password: 'pass' },
      undefined,
    ]) {
      const context = await beside[kind].newContext({ ...(proxy && { proxy }) })
      const page = await context.newPage()
      found.push(
        proxy
          ? `${await outcomeOf(page, 'http://example.test/')} ${await page.title()}`
          : await outcomeOf(page, pages.url),
      )
      await context.close()
    }
    const browser = await puppeteer.connect({ browserWSEndpoint: beside.cdpUrls[kind] })
    const context = await browser.createBrowserContext({ proxyServer: address(first) })
    const page = await context.newPage()
    await page.goto('http://example.test/')
    found.push(await page.title())
    await context.close()
    await browser.disconnect()
    return found
  }

  const bare = await titles('bare')
  const session = await titles('session')

  assert.deepEqual(session, bare)
  assert.deepEqual(session, ['200 first', '200 second', '200', 'first'])
})

test('two peers of one page connect', async () => {
  const page = await beside.session.newPage()
  await page.goto(pages.url)

  const outcome = await page.evaluate(`(async () => {
    const [one, two] = [new RTCPeerConnection(), new RTCPeerConnection()]
    one.onicecandidate = ({ candidate }) => candidate && two.addIceCandidate(candidate)
    two.onicecandidate = ({ candidate }) => candidate && one.addIceCandidate(candidate)
    const channel = one.createDataChannel('data')
    const heard = new Promise((resolve) => {
      two.ondatachannel = ({ channel }) => { channel.onmessage = ({ data }) => resolve(data) }
    })
    channel.onopen = () => channel.send('hello')
    await one.setLocalDescription(await one.createOffer())
    await two.setRemoteDescription(one.localDescription)
    await two.setLocalDescription(await two.createAnswer())
    await one.setRemoteDescription(two.localDescription)
    return Promise.race([heard, new Promise((resolve) => setTimeout(resolve, 20000, one.iceConnectionState))])
  })()`)

  assert.equal(outcome, 'hello')
  await page.close()
})

test('HTTP authentication works, also when it belongs to the connection', async () => {
  await using byPassword = await startRawServer((socket) =>
    onRequests(socket, (_method, _path, head) => {
      const isIn = head.includes(`Authorization: Basic ${Buffer.from('user:pass').toString('base64')}`)
      const status = isIn ? '200 OK' : '401 Unauthorized\r\nWWW-Authenticate: Basic realm="x"'
      socket.write(`HTTP/1.1 ${status}\r\nContent-Length: 2\r\n\r\nok`)
    }),
  )
  // Like NTLM: the second message is valid only on the connection of the first.
  await using byConnection = await startRawServer((socket) => {
    let hasChallenged = false
    onRequests(socket, (_method, _path, head) => {
      const [, message = ''] = /^Authorization: NTLM (\S+)/m.exec(head) ?? []
      const type = Buffer.from(message, 'base64').at(8)
      if (type === 3 && hasChallenged) return socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
      hasChallenged = type === 1
      const challenge = hasChallenged ? ` ${ntlmChallenge.toString('base64')}` : ''
      socket.write(`HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: NTLM${challenge}\r\nContent-Length: 0\r\n\r\n`)
    })
  })
  const outcome = async (kind: 'session' | 'bare') => {
    const context = await beside[kind].newContext({ httpCredentials: { username: 'user', password: 'pass' } })
    const without = await beside[kind].newContext()
    const page = await context.newPage()
    const found = [
      await outcomeOf(page, `http://${hostName}:${byPassword.port}/`),
      await outcomeOf(page, `http://${hostName}:${byConnection.port}/`),
      await outcomeOf(await without.newPage(), `http://${hostName}:${byPassword.port}/`),
      await outcomeOf(await without.newPage(), `http://user:pass@${hostName}:${byPassword.port}/`),
    ]
    await Promise.all([context.close(), without.close()])
    return found
  }

  const [bare, session] = await Promise.all([outcome('bare'), outcome('session')])

  assert.deepEqual(session, bare)
  assert.deepEqual(session, ['200', '200', 'ERR_INVALID_AUTH_CREDENTIALS', '200'])
})

/** MS-NLMP: signature, type 2, an empty target, flags, a challenge, an empty list of target information. */
const ntlmChallenge = Buffer.concat([
  Buffer.from('NTLMSSP\0'),
  Buffer.from('02000000' + '0000000038000000' + '01028000' + '0123456789abcdef' + '0000000000000000', 'hex'),
  Buffer.from('0400040038000000' + '0000000000000000', 'hex'),
  Buffer.from('00000000', 'hex'),
])

test('an untrusted certificate is refused unless the context accepts it', async () => {
  await using proxy = await startExitProxy({ name: 'secure' })
  const server = `http://${hostName}:${proxy.port}`
  const outcome = async (kind: 'session' | 'bare') => {
    const found: string[] = []
    for (const ignoreHTTPSErrors of [false, true]) {
      const context = await beside[kind].newContext({ ignoreHTTPSErrors, proxy: { server } })
      found.push(await outcomeOf(await context.newPage(), 'https://secure.test/'))
      await context.close()
    }
    return found
  }

  const [bare, session] = await Promise.all([outcome('bare'), outcome('session')])

  assert.deepEqual(session, bare)
  assert.deepEqual(session, ['ERR_CERT_AUTHORITY_INVALID', '200'])
})
