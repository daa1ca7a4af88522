import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, afterEach, before, suite, test } from 'node:test'
import {
  call,
  canBeUsed,
  createSession,
  deleteSession,
  isActive,
  type SessionRecord,
} from './fault/testing/sessions.ts'
import { until } from './fault/testing/until.ts'
import { Berth } from './testing/berth.ts'
import { CdpClient } from './testing/cdp.ts'
import { findKubelet, isLeft, kubectl, machineSelector, noCluster, podOf } from './testing/cluster.ts'
import { clusterEnvironment } from './testing/cluster-environment.ts'

const kubelet = noCluster === false ? await findKubelet() : undefined
const noNode = noCluster || (kubelet === undefined && 'the kubelet of this cluster is on another host')
const againSeconds = 60
/** Until callers are told what the cluster knows. */
const toldSeconds = 15
/** A cluster takes a node for lost that has said nothing for 50 s, and machines stay on it for 5 s more. */
const lostSeconds = 120

/** These use the one node, or take it away, so no other test may run meanwhile (run-tests.ts). */
suite('the node of machines', { skip: noNode, timeout: 300_000 }, () => {
  let berth: Berth
  let node: string

  before(async () => {
    berth = await Berth.start({ environment: { BERTH_STANDBY: 'off' } })
    node = await kubectl('get', 'nodes', '--output=jsonpath={.items[0].metadata.name}')
  })
  // Whatever a test has left of the node, the next one finds it whole.
  afterEach(async () => {
    const pid = await findKubelet()
    if (pid !== undefined) process.kill(pid, 'SIGCONT')
    await kubectl('uncordon', node)
    await kubectl('wait', `node/${node}`, '--for=condition=Ready', '--timeout=120s')
    await until('no taints', async () => (await taints()) === '', { limitSeconds: againSeconds })
  })
  after(() => berth?.[Symbol.asyncDispose]())

  const taints = () => kubectl('get', 'node', node, '--output=jsonpath={.spec.taints}')

  /** A page with something that only its memory has. */
  async function keep({ cdp_ws_url }: SessionRecord) {
    const client = await CdpClient.open(cdp_ws_url)
    const page = await client.openPage()
    await client.evaluate(page, 'window.kept = 42')
    return { client, read: () => client.evaluate(page, 'window.kept') }
  }

  async function createLater(): Promise<SessionRecord> {
    const attempt = async () => {
      const { status, body } = await call(berth, 'POST', '/browsers', { headless: true })
      return status === 200 && body
    }
    return until('a create', attempt, { limitSeconds: againSeconds, everyMilliseconds: 500 })
  }

  test('while the kubelet is killed and comes back, sessions go on, and later ones start and end', async () => {
    const session = await createSession(berth)
    const { client, read } = await keep(session)

    process.kill((await findKubelet()) ?? assert.fail('there is no kubelet'), 'SIGKILL')
    const meanwhile = await read()
    await until('another kubelet', findKubelet, { limitSeconds: againSeconds })
    const later = await createLater()

    assert.deepEqual([meanwhile, await read()], [42, 42])
    assert.ok(await canBeUsed(later))
    await client.close()
    for (const { session_id } of [session, later]) {
      assert.equal(await deleteSession(berth, session_id), 204)
      assert.equal(await isLeft(podOf(session_id)), false)
    }
  })

  test('sessions end with a node that is drained, and creates are told why there is no room', async () => {
    const session = await createSession(berth)
    const { client } = await keep(session)
    const closed = once(client.socket, 'close')

    await kubectl('drain', node, '--force', '--delete-emptydir-data', `--pod-selector=${machineSelector}`)
    await closed
    await until('404', async () => !(await isActive(berth, session.session_id)), { limitSeconds: toldSeconds })
    const refused = await call<{ code: string; message: string }>(berth, 'POST', '/browsers', { headless: true })
    await kubectl('uncordon', node)
    const later = await createLater()

    assert.equal(await isLeft(podOf(session.session_id)), false)
    assert.deepEqual([refused.status, refused.shouldRetry, refused.body.code], [529, 'true', 'capacity_exhausted'])
    assert.match(refused.body.message, /unschedulable/)
    assert.ok(await canBeUsed(later))
    assert.equal(await deleteSession(berth, later.session_id), 204)
  })

  test('a session ends with the reason when its machine is preempted', async () => {
    const session = await createSession(berth)
    const { client } = await keep(session)
    const closed = once(client.socket, 'close')
    const urgent = await startUrgentPod(node)
    try {
      await closed
      await until('404', async () => !(await isActive(berth, session.session_id)), { limitSeconds: toldSeconds })
      const refused = await call<{ code: string; message: string }>(berth, 'POST', '/browsers', { headless: true })

      assert.match(berth.log, /a session ends: its machine ended: PreemptionByScheduler/)
      assert.equal(await isLeft(podOf(session.session_id)), false)
      assert.deepEqual([refused.status, refused.body.code], [529, 'capacity_exhausted'])
      assert.match(refused.body.message, /Insufficient cpu/)
    } finally {
      await urgent.remove()
    }
    const later = await createLater()

    assert.ok(await canBeUsed(later))
    assert.equal(await deleteSession(berth, later.session_id), 204)
  })

  test('sessions of a node that is lost end, and it takes new ones when it is back', async () => {
    const session = await createSession(berth)
    const pid = (await findKubelet()) ?? assert.fail('there is no kubelet')

    // The cluster hears no more of it.
    process.kill(pid, 'SIGSTOP')
    await until('404', async () => !(await isActive(berth, session.session_id)), { limitSeconds: lostSeconds })
    const refused = await call<{ code: string; message: string }>(berth, 'POST', '/browsers', { headless: true })
    await until('nothing is left in the cluster', async () => !(await isLeft(podOf(session.session_id))), {
      limitSeconds: againSeconds,
    })
    process.kill(pid, 'SIGCONT')
    const later = await createLater()

    assert.deepEqual([refused.status, refused.body.code], [529, 'capacity_exhausted'])
    assert.match(refused.body.message, /untolerated taint/)
    assert.ok(await canBeUsed(later))
    assert.equal(await deleteSession(berth, later.session_id), 204)
  })
})

/** A pod that needs all processors of the node, and is more important than machines. */
async function startUrgentPod(node: string): Promise<{ readonly remove: () => Promise<void> }> {
  const name = 'berth-test-urgent'
  const cpu = await kubectl('get', 'node', node, '--output=jsonpath={.status.allocatable.cpu}')
  const image = clusterEnvironment.BERTH_KUBERNETES_IMAGE ?? ''
  const container = { name, image, command: ['/bin/sleep', 'infinity'], resources: { requests: { cpu } } }
  const spec = { priorityClassName: name, terminationGracePeriodSeconds: 0, containers: [container] }
  await kubectl('create', 'priorityclass', name, '--value=1000')
  await kubectl('run', name, `--image=${image}`, `--overrides=${JSON.stringify({ apiVersion: 'v1', spec })}`)
  return {
    remove: async () => {
      await kubectl('delete', `pod/${name}`, `priorityclass/${name}`)
    },
  }
}
