import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { podPorts } from '@berth/contract/agent/machine/machine-pod.ts'
import { retry } from '@berth/runtime/async/retry.ts'
import { containerNames } from '@berth/server/drivers/kubernetes/machine-pod.ts'
import type Kernel from '@onkernel/sdk'
import type { BrowserCreateResponse } from '@onkernel/sdk/resources/browsers'
import type { TelemetryStreamResponse } from '@onkernel/sdk/resources/browsers/telemetry'
import { chromium, type Page } from 'playwright-core'
import { rounds } from '../../e2e/fault/testing/deep.ts'
import { until } from '../../e2e/fault/testing/until.ts'
import { CdpClient } from '../../e2e/testing/cdp.ts'
import { SessionLoad } from './session-load.ts'
import { noInstall, TestInstallation } from './test-installation.ts'
import { noGateway, noProxies } from './test-proxies.ts'

const patience = { firstPauseMilliseconds: 100, longestPauseMilliseconds: 1_000, patienceMilliseconds: 60_000 }

/** Repeats an assertion until it holds. */
function eventually(check: () => Promise<void>): Promise<void> {
  return retry(check, patience)
}

/** The same WebSocket at another address of berth. */
function at(baseUrl: string, webSocket: string): string {
  const { pathname, search } = new URL(webSocket)
  return `${baseUrl.replace(/^http/, 'ws')}${pathname}${search}`
}

/** Runs a function on the first page of the session, with a new connection. */
async function onPage(address: string, act: (page: Page) => Promise<void>): Promise<void> {
  const browser = await chromium.connectOverCDP(address)
  try {
    await act(browser.contexts()[0]?.pages()[0] ?? assert.fail('there is no page'))
  } finally {
    await browser.close()
  }
}

/** What a stream of telemetry has brought. */
class Events {
  readonly #types = new Set<string>()
  #end: unknown

  constructor(stream: AsyncIterable<TelemetryStreamResponse>) {
    void this.#read(stream)
  }

  has(type: string): boolean {
    if (this.#end) throw this.#end
    return this.#types.has(type)
  }

  async #read(stream: AsyncIterable<TelemetryStreamResponse>): Promise<void> {
    try {
      for await (const { event } of stream) this.#types.add(event.type)
      this.#end = new Error('the stream ended')
    } catch (error) {
      this.#end = error
    }
  }
}

const needsProxies = { skip: noProxies ?? false }

describe('the chart in a cluster', { skip: noInstall ?? false }, async () => {
  if (noInstall !== undefined) return
  const berth = await TestInstallation.open()
  let client: Kernel
  let kept: BrowserCreateResponse
  after(() => berth[Symbol.asyncDispose]())

  it('is installed by helm, which waits until it is ready', async () => {
    await berth.install()

    client = await berth.client(berth.proxies?.ingressUrl ?? (await berth.serviceUrl()))

    assert.deepEqual((await client.browsers.list()).items, [])
  })

  it('serves a session through its Service, with a browser that clients control', async () => {
    const serviceUrl = await berth.serviceUrl()
    const inCluster = await berth.client(serviceUrl)
    const session = await inCluster.browsers.create({ headless: true, timeout_seconds: 900 })

    await onPage(at(serviceUrl, session.cdp_ws_url), async (page) => {
      await page.setContent('<h1>in a pod</h1>')
      assert.equal(await page.textContent('h1'), 'in a pod')
    })

    kept = session
  })

  it('serves sessions through its Ingress with TLS, and names the address of the Ingress', needsProxies, async () => {
    const { ingressUrl = '' } = berth.proxies ?? {}

    const session = await client.browsers.create({ headless: true })

    assert.equal(new URL(session.cdp_ws_url).origin, ingressUrl.replace('https', 'wss'))
    assert.equal(new URL(session.base_url ?? '').origin, ingressUrl)
    await onPage(session.cdp_ws_url, async (page) => assert.equal(await page.evaluate('6 * 7'), 42))
    await client.browsers.deleteByID(session.session_id)
  })

  it('serves sessions through its HTTPRoute with TLS', { skip: noGateway ?? false }, async () => {
    const { gatewayUrl = '' } = berth.proxies ?? {}
    const { browsers } = await berth.client(gatewayUrl)

    const session = await browsers.create({ headless: true })

    const address = at(gatewayUrl, session.cdp_ws_url)
    await onPage(address, async (page) => assert.equal(await page.evaluate('6 * 7'), 42))
    await browsers.deleteByID(session.session_id)
  })

  it('loses no session and fails no repeated request while an update replaces the servers under load', {
    timeout: 300_000,
  }, async () => {
    const sessions = await Promise.all([1, 2].map(() => client.browsers.create({ headless: true })))
    const serviceUrl = await berth.serviceUrl()
    const [first, second] = sessions as [BrowserCreateResponse, BrowserCreateResponse]
    const atService = { ...first, cdp_ws_url: at(serviceUrl, first.cdp_ws_url) }
    const loads = [new SessionLoad(await berth.client(serviceUrl), [atService]), new SessionLoad(client, [second])]
    await Promise.all(loads.map((load) => load.begin()))

    await berth.replaceServers()
    const results = await Promise.all(loads.map((load) => load.end()))

    for (const { connections, requests, failures } of results) {
      assert.deepEqual(failures, [])
      // Each client had to connect again, and each did so at the same URL.
      assert.ok(connections > 1, `${connections} connections`)
      assert.ok(requests > 0)
    }
    // A session that nobody used meanwhile has its page, too.
    await eventually(() =>
      onPage(kept.cdp_ws_url, async (page) => assert.equal(await page.textContent('h1'), 'in a pod')),
    )
    for (const { session_id } of sessions) await client.browsers.deleteByID(session_id)
  })

  it('lets connections through its Ingress and its HTTPRoute be quiet for long', needsProxies, async () => {
    // Longer than the usual 60 s of proxies in the long form, and longer than a keep-alive of berth in the short one.
    const seconds = rounds({ short: 20, deep: 90 })
    const telemetry = { enabled: true, browser: { control: { enabled: true } } }
    const session = await client.browsers.create({ headless: true, timeout_seconds: 300, telemetry })
    const id = session.session_id

    await Promise.all(
      (berth.proxies?.urls ?? []).map(async (url) => {
        const { browsers } = await berth.client(url)
        const cdp = await CdpClient.open(at(url, session.cdp_ws_url))
        const events = new Events(await browsers.telemetry.stream(id))

        // A request that is answered after this time, while nothing is sent on the others.
        const sleep = { command: 'sleep', args: [`${seconds}`], timeout_sec: 2 * seconds }
        const { exit_code } = await browsers.process.exec(id, sleep, { timeout: 2_000 * seconds, maxRetries: 0 })

        assert.equal(exit_code, 0, url)
        assert.ok(await cdp.send('Browser.getVersion'), url)
        await browsers.computer.moveMouse(id, { x: 5, y: 5 })
        await until(`a move in the events at ${url}`, () => events.has('api_call'), { limitSeconds: 10 })
        cdp.socket.terminate()
      }),
    )
    await client.browsers.deleteByID(id)
  })

  it('runs machines with its seccomp profile, and no process of a pod as root', async () => {
    const { namespace } = berth
    const { items } = await berth.core.listNamespacedPod({
      namespace,
      labelSelector: 'app.kubernetes.io/name=berth-machine',
    })

    assert.ok(items.length > 0)
    for (const { spec } of items) {
      assert.match(spec?.securityContext?.seccompProfile?.localhostProfile ?? '', /^berth\/machine-[0-9a-f]{12}.json$/)
      assert.equal(spec?.hostUsers, false)
    }
  })

  it('lets only servers connect to machines, and machines not to the API, the node, other pods or metadata', async (context) => {
    const { core, namespace } = berth
    const outsider = await berth.startOutsider()
    context.after(() => outsider[Symbol.asyncDispose]())
    const { spec } = await core.readNamespacedService({ namespace: 'default', name: 'kubernetes' })

    // Policies are applied after their pods start, and machines of the reserve change.
    await eventually(async () => {
      const { items } = await core.listNamespacedPod({ namespace })
      const named = (name: string) =>
        items.filter(({ metadata }) => metadata?.labels?.['app.kubernetes.io/name'] === name)
      const { metadata, status } = named('berth-machine')[0] ?? assert.fail('there is no machine')
      const inMachine = `${status?.podIP}:${podPorts.servers}`
      const ofCluster = [`${spec?.clusterIP}:443`, `${status?.hostIP}:10250`]
      const ofServers = named('berth-server').map((server) => `${server.status?.podIP}:8080`)
      const forbidden = [...ofCluster, ...ofServers, '169.254.169.254:80', '169.254.170.2:80']
      const node = '/opt/berth/bin/node'

      const byOutsider = await berth.reachedFrom(outsider.name, outsider.name, node, [inMachine, ...ofCluster])
      const pod = metadata?.name ?? ''
      const byMachine = await berth.reachedFrom(pod, containerNames.egress, '/opt/berth/node', forbidden)

      // The outsider has no restrictions, so it verifies that the addresses of the cluster respond.
      assert.deepEqual([byOutsider, byMachine], [ofCluster, []])
    })
  })

  it('removes the machine of a deleted session', async () => {
    const session = await client.browsers.create({ headless: true })

    await client.browsers.deleteByID(session.session_id)

    // The machine of the other session, and one in the reserve of each server.
    await eventually(async () => assert.equal((await berth.machines()).length, 3))
  })

  it('removes everything that it has created, including machines, when it is uninstalled', async () => {
    assert.equal((await client.browsers.retrieve(kept.session_id)).session_id, kept.session_id)

    await berth.uninstall()

    await eventually(async () => assert.deepEqual(await berth.remains(), []))
  })
})
