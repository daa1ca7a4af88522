import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, suite, test } from 'node:test'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { SharedBerths } from './testing/shared-berths.ts'

const { KUBECONFIG = '', BERTH_TEST_KUBERNETES, BERTH_TEST_KUBERNETES_IMAGE: image = '' } = process.env
const noCluster = BERTH_TEST_KUBERNETES === '1' && image !== '' ? undefined : 'no cluster: ./berth test --kubernetes'
const drainSeconds = 8
/** A connection per request, because connections of a server that ends are closed. */
const ofItsOwn = { connection: 'close' }
/** Allows for a busy machine: a server counts as gone after 8 s, and its sessions move within a few more. */
const moveSeconds = 60

interface SessionRecord {
  readonly session_id: string
  readonly cdp_ws_url: string
}

suite('servers whose machines are pods', { skip: noCluster }, () => {
  let shared: SharedBerths<Berth>
  const servers: Berth[] = []
  const environment = {
    KUBECONFIG,
    BERTH_DRIVER: 'kubernetes',
    BERTH_KUBERNETES_IMAGE: image,
    BERTH_KUBERNETES_NAMESPACE: 'default',
    BERTH_KUBERNETES_CPU_REQUEST: '10m',
    BERTH_DRAIN_SECONDS: String(drainSeconds),
  }

  before(async () => {
    const { BERTH_DRAIN_SECONDS: _, ...holder } = environment
    shared = await SharedBerths.open((options) =>
      Berth.startOne({ ...options, environment: { ...holder, BERTH_DRAIN_SECONDS: '0', ...options.environment } }),
    )
    for (let count = 0; count < 2; count += 1) await startServer()
  })
  after(() => shared[Symbol.asyncDispose]())

  async function startServer(): Promise<Berth> {
    const server = await shared.start({ environment })
    servers.push(server)
    return server
  }

  async function remove(server: Berth, { session_id }: SessionRecord): Promise<number> {
    return (await server.request(`/browsers/${session_id}`, { method: 'DELETE', headers: ofItsOwn })).status
  }

  async function isReady(server: Berth): Promise<boolean> {
    return (await server.request('/health/ready', { headers: ofItsOwn })).status === 200
  }

  /** Creates a session on the server; its addresses are those shared by all servers. */
  async function create(server: Berth): Promise<SessionRecord> {
    const body = JSON.stringify({ headless: true, timeout_seconds: 600 })
    const headers = { 'content-type': 'application/json', ...ofItsOwn }
    const response = await server.request('/browsers', { method: 'POST', headers, body })
    assert.equal(response.status, 200)
    const session = (await response.json()) as SessionRecord
    const url = new URL(session.cdp_ws_url)
    url.port = new URL(shared.url).port
    return { ...session, cdp_ws_url: url.href }
  }

  /** Opens a page with a value that exists only in its memory. */
  async function openPage(cdp: CdpClient): Promise<string> {
    const page = await cdp.openPage('about:blank#kept')
    await cdp.evaluate(page, 'window.kept = 42')
    return page
  }

  async function readPage(cdp: CdpClient): Promise<unknown> {
    return cdp.evaluate(await cdp.attachToPage((url) => url.endsWith('#kept')), 'window.kept')
  }

  function reconnect({ cdp_ws_url: url }: SessionRecord): Promise<CdpClient> {
    return until(
      'the session to be reached',
      () => CdpClient.open(url, { handshakeTimeout: 25_000 }).catch(() => undefined),
      {
        limitSeconds: moveSeconds,
        everyMilliseconds: 200,
      },
    )
  }

  test('the session of a server that is killed is reached at the same URL, with its page', {
    timeout: 180_000,
  }, async () => {
    const [killed, other] = servers as [Berth, Berth]
    const session = await create(killed)
    const cdp = await CdpClient.open(session.cdp_ws_url)
    await openPage(cdp)
    const cut = once(cdp.socket, 'close')

    await killed.signal('SIGKILL')
    shared.use([other])
    await cut
    const again = await reconnect(session)

    assert.equal(await readPage(again), 42)
    await again.close()
    assert.equal(await remove(other, session), 204)
  })

  test('a server that stops hands its sessions to others, and lets clients finish', { timeout: 180_000 }, async () => {
    const [, ending] = servers as [Berth, Berth]
    const staying = await startServer()
    shared.use([ending])
    const session = await create(ending)
    const cdp = await CdpClient.open(session.cdp_ws_url)
    const page = await openPage(cdp)
    const closed = once(cdp.socket, 'close')
    assert.ok(await isReady(ending))

    const exited = ending.signal('SIGTERM')
    await until('it is not ready', async () => !(await isReady(ending)), { limitSeconds: 60 })
    shared.use([staying])
    const elsewhere = await reconnect(session)
    const seen = await readPage(elsewhere)
    const before = await cdp.evaluate(page, 'window.kept + 1')
    const [code] = (await closed) as [number]

    assert.deepEqual([seen, before, code], [42, 43, 1012])
    assert.equal(await exited, 0)
    assert.equal(await readPage(await reconnect(session)), 42)
    assert.equal(await remove(staying, session), 204)
  })

  test('all servers are replaced one after another, and no session is lost', { timeout: 180_000 }, async () => {
    const [old] = servers.filter(({ hasEnded }) => !hasEnded) as [Berth]
    shared.use([old])
    const sessions = [await create(old), await create(old)]
    for (const session of sessions) {
      const cdp = await CdpClient.open(session.cdp_ws_url)
      await openPage(cdp)
      await cdp.close()
    }

    let serving = old
    for (let round = 0; round < 2; round += 1) {
      const next = await startServer()
      const exited = serving.signal('SIGTERM')
      shared.use([next])
      // A create while servers change.
      if (round === 0) sessions.push(await create(next))
      assert.equal(await exited, 0)
      serving = next
    }

    const seen = await Promise.all(sessions.slice(0, 2).map(async (session) => readPage(await reconnect(session))))
    assert.deepEqual(seen, [42, 42])
    for (const session of sessions) assert.equal(await remove(serving, session), 204)
  })
})
