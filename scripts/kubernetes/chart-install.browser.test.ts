import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { podPorts } from '@berth/contract/agent/machine/machine-pod.ts'
import { retry } from '@berth/runtime/async/retry.ts'
import { containerNames } from '@berth/server/drivers/kubernetes/machine-pod.ts'
import type Kernel from '@onkernel/sdk'
import type { BrowserCreateResponse } from '@onkernel/sdk/resources/browsers'
import { chromium, type Page } from 'playwright-core'
import { SessionLoad } from './session-load.ts'
import { noInstall, TestInstallation } from './test-installation.ts'

const patience = { firstPauseMilliseconds: 100, longestPauseMilliseconds: 1_000, patienceMilliseconds: 60_000 }

/** Repeats an assertion until it holds. */
function eventually(check: () => Promise<void>): Promise<void> {
  return retry(check, patience)
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

describe('the chart in a cluster', { skip: noInstall ?? false }, async () => {
  if (noInstall !== undefined) return
  const berth = await TestInstallation.open()
  let client: Kernel
  let kept: BrowserCreateResponse
  after(() => berth[Symbol.asyncDispose]())

  it('is installed by helm, which waits until it is ready', async () => {
    await berth.install()

    client = await berth.client()

    assert.deepEqual((await client.browsers.list()).items, [])
  })

  it('serves a session through its Service, with a browser that clients control', async () => {
    const session = await client.browsers.create({ headless: true })

    await onPage(session.cdp_ws_url, async (page) => {
      await page.setContent('<h1>in a pod</h1>')
      assert.equal(await page.textContent('h1'), 'in a pod')
    })

    kept = session
  })

  it('keeps its sessions and their pages while an update replaces the servers', async () => {
    await berth.replaceServers()

    await eventually(() =>
      onPage(kept.cdp_ws_url, async (page) => assert.equal(await page.textContent('h1'), 'in a pod')),
    )
  })

  it('loses no session and fails no repeated request while an update replaces the servers under load', {
    timeout: 300_000,
  }, async () => {
    const sessions = await Promise.all([1, 2].map(() => client.browsers.create({ headless: true })))
    const load = new SessionLoad(client, sessions)
    await load.begin()

    await berth.replaceServers()
    const { connections, requests, failures } = await load.end()

    assert.deepEqual(failures, [])
    // Each client had to connect again, and each did so at the same URL.
    assert.ok(connections > sessions.length, `${connections} connections`)
    assert.ok(requests > 0)
    for (const { session_id } of sessions) await client.browsers.deleteByID(session_id)
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
