import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, suite, test } from 'node:test'
import { canBeUsed, createSession, deleteSession, isActive, type SessionRecord } from './fault/testing/sessions.ts'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { inContainer, isLeft, killByCommand, kubectl, noCluster, podOf } from './testing/cluster.ts'
import { type Pages, startPages } from './testing/pages.ts'

/** Until callers are told. The node tells the cluster, and the cluster tells the server. */
const toldSeconds = 15
/** Until a container runs again, on a busy node. */
const againSeconds = 60

suite('parts of a machine in a pod that are killed', { skip: noCluster, timeout: 240_000 }, () => {
  let berth: Berth
  let pages: Pages

  before(async () => {
    pages = await startPages()
    // The machines are entered from outside, which is no activity of theirs.
    berth = await Berth.start({ environment: { BERTH_STANDBY: 'off', BERTH_EGRESS_ALLOW: pages.allowed } })
  })
  after(async () => {
    await berth?.[Symbol.asyncDispose]()
    await pages?.[Symbol.asyncDispose]()
  })

  /** The session is over for its clients and callers, and nothing of it is left. */
  async function endsWith(session: SessionRecord, kill: (pod: string) => Promise<unknown>): Promise<void> {
    const pod = podOf(session.session_id)
    const client = await CdpClient.open(session.cdp_ws_url)
    const closed = once(client.socket, 'close')
    await kill(pod)
    await closed
    await until('404', async () => !(await isActive(berth, session.session_id)), { limitSeconds: toldSeconds })
    await until('nothing is left', async () => !(await isLeft(pod)), { limitSeconds: againSeconds })
  }

  for (const [what, kill] of [
    [
      'its agent is killed',
      (pod: string) => inContainer(pod, 'machine', killByCommand('^/opt/berth/node /opt/berth/programs/agent')),
    ],
    ['the first process of its machine ends', (pod: string) => inContainer(pod, 'machine', 'kill -TERM 1')],
    ['somebody deletes its pod', (pod: string) => kubectl('delete', 'pod', pod, '--wait=false')],
    ['somebody deletes its pod by force', (pod: string) => kubectl('delete', 'pod', pod, '--force', '--wait=false')],
  ] as const) {
    test(`a session ends within seconds when ${what}, and no other does`, async () => {
      const [session, other] = [await createSession(berth), await createSession(berth)]

      await endsWith(session, kill)

      assert.ok(await canBeUsed(other))
      assert.equal(await deleteSession(berth, other.session_id), 204)
    })
  }

  test('a browser that is killed comes back at the same address', async () => {
    const session = await createSession(berth)
    const client = await CdpClient.open(session.cdp_ws_url)
    const closed = once(client.socket, 'close')

    await inContainer(podOf(session.session_id), 'machine', killByCommand('^/usr/lib/chromium/chromium --([^t]|t[^y])'))

    await closed
    await until('a browser', () => canBeUsed(session).catch(() => false), { limitSeconds: againSeconds })
    assert.equal(await deleteSession(berth, session.session_id), 204)
  })

  test('egress that ends is started again, and pages load as before', async () => {
    const session = await createSession(berth)
    const pod = podOf(session.session_id)
    const restarts = () =>
      kubectl('get', 'pod', pod, '--output=jsonpath={.status.initContainerStatuses[0].restartCount}')

    await inContainer(pod, 'egress', 'kill -TERM 1')
    await until('a restart', async () => (await restarts()) === '1', { limitSeconds: againSeconds })

    await until('a page that loads', () => loads(session).catch(() => false), { limitSeconds: againSeconds })
    assert.ok(await isActive(berth, session.session_id))
    assert.equal(await deleteSession(berth, session.session_id), 204)
  })

  async function loads({ cdp_ws_url }: SessionRecord): Promise<boolean> {
    const client = await CdpClient.open(cdp_ws_url)
    try {
      const page = await client.openPage(pages.url)
      const title = async () => (await client.evaluate(page, 'document.title')) === 'Home'
      return await until('the page', title, { limitSeconds: 5 })
    } finally {
      await client.close()
    }
  }
})
