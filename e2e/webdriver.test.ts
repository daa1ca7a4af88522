import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { after, test } from 'node:test'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { BidiClient } from './testing/browsers/bidi.ts'
import { CdpClient } from './testing/cdp.ts'
import { hostMachinesOnly } from './testing/cluster-environment.ts'
import { startPages } from './testing/pages.ts'
import { agentProcess, listProcesses } from './testing/processes.ts'

/** selenium-webdriver has no type declarations. */
const require = createRequire(import.meta.url)

const pages = await startPages()
pages.serve(
  '/form',
  `<!doctype html><title>Form</title><input><button onclick="document.title = document.querySelector('input').value">Send</button>`,
)
const berth = await Berth.borrow()
const client = await berth.client()
after(async () => {
  await berth[Symbol.asyncDispose]()
  await pages[Symbol.asyncDispose]()
})

interface Session {
  readonly session_id: string
  readonly webdriver_ws_url: string
  readonly cdp_ws_url: string
}

async function withSession(use: (session: Session, token: string) => Promise<void>, headless = true): Promise<void> {
  const session = await client.browsers.create({ headless, timeout_seconds: 120 })
  try {
    await use(session, new URL(session.webdriver_ws_url).searchParams.get('jwt') ?? '')
  } finally {
    await client.browsers.deleteByID(session.session_id)
  }
}

/** The http form of the URL, with the caller's path appended. */
function classicUrl({ webdriver_ws_url }: Session, path = ''): string {
  const url = new URL(webdriver_ws_url.replace(/^ws/, 'http'))
  url.pathname += path
  return url.href
}

interface ClassicAnswer {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: a test knows what it asked for.
  readonly value: any
}

async function command(url: string, method: string, body?: object | string, headers = {}): Promise<ClassicAnswer> {
  const sent = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const response = await fetch(url, { method, headers, ...(sent !== undefined && { body: sent }) })
  return { status: response.status, ...((await response.json()) as { value: unknown }) } as ClassicAnswer
}

for (const headless of [true, false]) {
  test(`Selenium's Remote works in a ${headless ? 'headless' : 'headful'} session, and quit does not close the browser`, () =>
    withSession(async (session, token) => {
      const { Builder, By } = require('selenium-webdriver')
      const address = new URL(classicUrl(session))
      Object.assign(address, { username: 'jwt', password: token, search: '' })

      const driver = await new Builder().forBrowser('chrome').usingServer(address.href).build()
      await driver.get(`${pages.url}/form`)
      await driver.findElement(By.css('input')).sendKeys('sent by Selenium')
      await driver.findElement(By.css('button')).click()
      const title = await driver.getTitle()
      const picture = Buffer.from(await driver.takeScreenshot(), 'base64')
      const capabilities = await driver.getCapabilities()
      const cdp = await CdpClient.open(capabilities.get('se:cdp'))
      const { product } = (await cdp.send('Browser.getVersion')) as { product: string }
      await cdp.close()
      const bidi = await driver.getBidi()
      const tree = await bidi.send({ method: 'browsingContext.getTree', params: {} })
      await driver.quit()

      assert.equal(title, 'sent by Selenium')
      assert.equal(picture.subarray(1, 4).toString(), 'PNG')
      assert.match(product, /^Chrome/)
      assert.equal(tree.result.contexts[0].url, `${pages.url}/form`)
      const next = await BidiClient.open(session.webdriver_ws_url)
      await next.send('session.new', {})
      const { contexts } = await next.send('browsingContext.getTree')
      assert.equal(contexts[0].url, `${pages.url}/form`)
      next.socket.terminate()
    }, headless))
}

test('the token is accepted wherever clients put it', () =>
  withSession(async (session, token) => {
    const plain = classicUrl(session).replace(/\?.*/, '')
    const basic = Buffer.from(`jwt:${token}`).toString('base64')
    const attempts: [form: string, url: string, headers: Record<string, string>, status: number][] = [
      ['in the query', `${plain}/session?jwt=${token}`, {}, 200],
      ['with the path behind the query', `${plain}?jwt=${token}/session`, {}, 200],
      ['with a slash at the end', `${plain}/session/?jwt=${token}`, {}, 200],
      ['as a bearer token', `${plain}/session`, { authorization: `Bearer ${token}` }, 200],
      ['as the password of the address', `${plain}/session`, { authorization: `Basic ${basic}` }, 200],
      ['nowhere', `${plain}/session`, {}, 401],
      ['damaged', `${plain}/session?jwt=${token}x`, {}, 401],
      [
        'of another session',
        `${plain.replace(session.session_id, `brw${'0'.repeat(21)}`)}/session?jwt=${token}`,
        {},
        401,
      ],
    ]

    for (const [form, url, headers, expected] of attempts) {
      const { status, value } = await command(url, 'POST', { capabilities: {} }, headers)
      assert.equal(status, expected, form)
      if (expected === 200) {
        assert.match(value.capabilities.webSocketUrl, /^ws:.*\/webdriver\/session\/[0-9a-f]{32}\?jwt=/)
        await command(classicUrl(session, `/session/${value.sessionId}`), 'DELETE')
      } else {
        assert.equal(value.error, 'session not created', form)
        assert.match(value.message, /jwt|token/)
      }
    }
  }))

test('errors have the form of WebDriver', () =>
  withSession(async (session) => {
    const { value: made } = await command(classicUrl(session, '/session'), 'POST', { capabilities: {} })
    const own = `/session/${made.sessionId}`
    const always = (capabilities: object) => ({ capabilities: { alwaysMatch: capabilities } })
    const proxy = { proxyType: 'manual', httpProxy: '127.0.0.1:1' }
    const attempts: [path: string, method: string, body: object | string | undefined, status: number, error: string][] =
      [
        ['/session', 'POST', 'no JSON', 400, 'invalid argument'],
        ['/session', 'POST', {}, 400, 'invalid argument'],
        ['/session', 'POST', { capabilities: { firstMatch: {} } }, 400, 'invalid argument'],
        ['/session', 'POST', always({ browserName: 'firefox' }), 500, 'session not created'],
        ['/session', 'POST', always({ proxy }), 500, 'session not created'],
        ['/session', 'GET', undefined, 405, 'unknown method'],
        [`/session/${'0'.repeat(32)}/url`, 'GET', undefined, 404, 'invalid session id'],
        ['/session/nobody/url', 'GET', undefined, 404, 'unknown command'],
        ['/shutdown', 'GET', undefined, 404, 'unknown command'],
        ['/sessions', 'GET', undefined, 404, 'unknown command'],
        [`${own}/nothing`, 'GET', undefined, 404, 'unknown command'],
        [`${own}/../../shutdown`, 'GET', undefined, 404, 'unknown command'],
        [`${own}/element`, 'POST', { using: 'css selector', value: '#none' }, 404, 'no such element'],
        [`${own}/url`, 'POST', {}, 400, 'invalid argument'],
      ]

    for (const [path, method, body, status, error] of attempts) {
      const answer = await command(classicUrl(session, path), method, body)
      assert.deepEqual([answer.status, answer.value.error], [status, error], `${method} ${path}`)
      assert.equal(typeof answer.value.stacktrace, 'string')
    }
    const { status, value } = await command(classicUrl(session, `${own}/title`), 'GET')
    assert.deepEqual({ status, value }, { status: 200, value: '' })
  }))

test('sessions end separately, by either protocol, with everything that belongs to them', () =>
  withSession(async (session) => {
    const create = async () => (await command(classicUrl(session, '/session'), 'POST', { capabilities: {} })).value
    const [first, second, third] = [await create(), await create(), await create()]
    const bidi = await BidiClient.open(first.capabilities.webSocketUrl)
    const other = await BidiClient.open(second.capabilities.webSocketUrl)
    const urlOf = ({ sessionId }: { sessionId: string }) => classicUrl(session, `/session/${sessionId}/url`)
    const elementKey = 'element-6066-11e4-a52e-4f735466cecf'

    await command(urlOf(second), 'POST', { url: `${pages.url}/form` })
    const found = await command(classicUrl(session, `/session/${second.sessionId}/element`), 'POST', {
      using: 'css selector',
      value: 'input',
    })
    const [context] = (await other.send('browsingContext.getTree')).contexts
    const focused = await other.send('script.callFunction', {
      functionDeclaration: '(element) => element.localName',
      arguments: [{ sharedId: found.value[elementKey] }],
      target: { context: context.context },
      awaitPromise: false,
    })
    await assert.rejects(other.send('session.new', { capabilities: {} }), /session not created/)
    await command(classicUrl(session, `/session/${first.sessionId}`), 'DELETE')
    assert.equal(await bidi.closed, 1000)
    await other.send('session.end')
    assert.equal(await other.closed, 1000)

    // Element ids are the same in both protocols.
    assert.deepEqual(focused.result, { type: 'string', value: 'input' })
    assert.equal((await command(urlOf(first), 'GET')).status, 404)
    await until('the end of the session', async () => (await command(urlOf(second), 'GET')).status === 404, {
      limitSeconds: 30,
    })
    await assert.rejects(BidiClient.open(second.capabilities.webSocketUrl))
    assert.equal((await command(urlOf(third), 'GET')).value, `${pages.url}/form`)
  }))

test('dialogs wait for the client, also with a BiDi connection', () =>
  withSession(async (session) => {
    const { value } = await command(classicUrl(session, '/session'), 'POST', { capabilities: {} })
    const bidi = await BidiClient.open(value.capabilities.webSocketUrl)
    await bidi.send('session.subscribe', { events: ['browsingContext.userPromptOpened'] })
    const own = `/session/${value.sessionId}`

    const script = { script: 'setTimeout(() => { window.answer = confirm("Sure?") })', args: [] }
    await command(classicUrl(session, `${own}/execute/sync`), 'POST', script)
    await until(
      'the dialog',
      async () => (await command(classicUrl(session, `${own}/alert/text`), 'GET')).status === 200,
      {
        limitSeconds: 30,
      },
    )
    const text = await command(classicUrl(session, `${own}/alert/text`), 'GET')
    await command(classicUrl(session, `${own}/alert/accept`), 'POST', {})
    const answer = await command(classicUrl(session, `${own}/execute/sync`), 'POST', {
      script: 'return window.answer',
      args: [],
    })

    assert.equal(text.value, 'Sure?')
    assert.equal(answer.value, true)
    bidi.socket.terminate()
  }))

test('closing the last window only ends the WebDriver session, and the next one has a window again', () =>
  withSession(async (session) => {
    const create = async () => (await command(classicUrl(session, '/session'), 'POST', { capabilities: {} })).value
    const first = await create()

    const left = await command(classicUrl(session, `/session/${first.sessionId}/window`), 'DELETE')
    const next = await create()

    assert.deepEqual(left.value, [])
    assert.equal((await command(classicUrl(session, `/session/${first.sessionId}/url`), 'GET')).status, 404)
    const navigated = await command(classicUrl(session, `/session/${next.sessionId}/url`), 'POST', { url: pages.url })
    assert.equal(navigated.status, 200)
  }))

test('the death of the browser or the driver ends the WebDriver sessions, and new ones work', hostMachinesOnly, () =>
  withSession(async (session) => {
    const create = async () => (await command(classicUrl(session, '/session'), 'POST', { capabilities: {} })).value
    for (const program of ['chromedriver', '/chromium/chromium']) {
      const made = await create()
      const bidi = await BidiClient.open(made.capabilities.webSocketUrl)

      process.kill(await processOf(session.session_id, program), 'SIGKILL')
      const nextAnswer = create()

      await bidi.closed
      const isGone = async () => {
        const { status, value } = await command(classicUrl(session, `/session/${made.sessionId}/url`), 'GET')
        return status === 404 && value.error === 'invalid session id'
      }
      await until('the end of the session', isGone, { limitSeconds: 30 })
      const next = await nextAnswer
      assert.match(next.sessionId ?? '', /^[0-9a-f]{32}$/, JSON.stringify(next))
    }
  }),
)

/** Finds a program that the session's agent started. */
async function processOf(sessionId: string, program: string): Promise<number> {
  const agent = await agentProcess(sessionId)
  const found = (await listProcesses()).find(({ parent, command }) => parent === agent && command.includes(program))
  return found?.pid ?? assert.fail(`the agent runs no ${program}`)
}
