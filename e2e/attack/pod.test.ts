import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, suite, test } from 'node:test'
import type Kernel from '@onkernel/sdk'
import { until } from '../fault/testing/until.ts'
import { CdpClient } from '../testing/cdp.ts'
import { findKubelet, inContainer, kubectl, noCluster, podOf } from '../testing/cluster.ts'
import { canaryPort, secrets, stunPort } from './testing/attack-target.ts'
import { connectTo, connectToUnix, lookUp, sendDatagrams } from './testing/machine-attacks.ts'
import { gatherCandidates, loadWithEveryApi, openWebSockets } from './testing/page-attacks.ts'
import { CallerShell, listenOnNode, nodeAddresses, PodTarget } from './testing/pod-target.ts'

const kubelet = noCluster === false ? await findKubelet() : undefined
const noNode = noCluster || (kubelet === undefined && 'the node of this cluster is another host')

/** Where a pod listens: for servers, and on its loopback for its containers. */
const podPorts = { servers: 8443, agent: 8401, supervisor: 8402 } as const
const ownEgress = '/run/berth/egress/egress.sock'

/** The guard alone keeps machines in here: the namespace has no NetworkPolicy. */
suite('a program in a pod', { skip: noNode, timeout: 240_000 }, () => {
  let target: PodTarget
  let session: Kernel.BrowserCreateResponse
  /** Another session on the same node, with a display. */
  let neighbour: Kernel.BrowserCreateResponse
  let machine: CallerShell
  let neighbourMachine: CallerShell
  let pod: string
  /** Every address of the cluster: of its API, of the node, and of the pods. */
  let places: readonly [host: string, port: number][]

  before(async () => {
    target = await PodTarget.start()
    const { browsers } = target.client
    ;[session, neighbour] = await Promise.all([
      browsers.create({ headless: true, timeout_seconds: 600 }),
      browsers.create({ headless: false, timeout_seconds: 600 }),
    ])
    machine = new CallerShell(target.client, session.session_id)
    neighbourMachine = new CallerShell(target.client, neighbour.session_id)
    pod = podOf(session.session_id)
    const api = await kubectl(
      '--namespace=default',
      'get',
      'service',
      'kubernetes',
      '--output=jsonpath={.spec.clusterIP}',
    )
    const { hostIP, podIP } = await statusOf(pod)
    const other = await statusOf(podOf(neighbour.session_id))
    const { port } = new URL(target.berth.url)
    places = [
      [api, 443],
      ...[6443, 10250, 10256, canaryPort, Number(port)].map((each) => [hostIP, each] as [string, number]),
      ...[podIP, other.podIP].map((host) => [host, podPorts.servers] as [string, number]),
      ...['127.0.0.1', 'localhost', '::1', '0', podIP].flatMap((host) =>
        [podPorts.agent, podPorts.supervisor, podPorts.servers, 2379, 6443, Number(port), canaryPort].map(
          (each) => [host, each] as [string, number],
        ),
      ),
      ...[...nodeAddresses.private, ...nodeAddresses.metadata].flatMap((host) =>
        [80, canaryPort].map((each) => [host, each] as [string, number]),
      ),
      ...['0xa9fea9fe', '2852039166', '::ffff:169.254.169.254', '64:ff9b::a9fe:a9fe', 'host.berth.internal'].map(
        (host) => [host, 80] as [string, number],
      ),
    ]
  })
  after(() => target?.[Symbol.asyncDispose]())

  async function statusOf(name: string): Promise<{ readonly hostIP: string; readonly podIP: string }> {
    return JSON.parse(await kubectl('get', 'pod', name, '--output=jsonpath={.status}'))
  }

  const reached = () => target.reached(() => machine.node(connectTo([['45.255.255.255', 80]])))

  test('connects only to public addresses: to nothing of the cluster, the node, another machine or metadata', async () => {
    const open = [
      ['45.5.5.5', 80],
      ['45.7.7.7', canaryPort],
    ]

    const connected = await machine.node(connectTo([...open, ...places]))

    assert.deepEqual(
      connected,
      open.map(([host, port]) => `${host} ${port}`),
    )
    assert.deepEqual((await reached()).toSorted(), ['tcp 45.5.5.5 80', `tcp 45.7.7.7 ${canaryPort}`])
  })

  test('sends no datagrams, and finds no names of the cluster', async () => {
    const hosts = [...Object.values(nodeAddresses).flat(), '255.255.255.255', '224.0.0.251']
    await machine.node(sendDatagrams(hosts, [53, stunPort]))

    const names = ['kubernetes.default.svc', 'kubernetes.default.svc.cluster.local', 'kubernetes', 'node1']
    const found = await machine.node(lookUp(names))

    assert.deepEqual([found, await reached()], [[], []])
  })

  test('reaches no more with its own Chromium than any program', async () => {
    const urls = places.map(([host, port]) => `http://${host.includes(':') ? `[${host}]` : host}:${port}/`)
    const cdp = await CdpClient.open(session.cdp_ws_url)
    const page = await cdp.openPage('http://45.5.5.5/')
    // A new tab shows about:blank first, whose execution context ends when the page loads.
    const isLoaded = `location.href === 'http://45.5.5.5/' && document.readyState === 'complete'`
    await until('the page', () => cdp.evaluate(page, isLoaded).catch(() => false), { limitSeconds: 30 })

    const loaded = await cdp.evaluate(page, loadWithEveryApi(urls.slice(0, 12)))
    const opened = await cdp.evaluate(page, openWebSockets(urls.map((url) => url.replace('http', 'ws'))))
    await cdp.evaluate(page, gatherCandidates(`169.254.169.254:${stunPort}`))

    await cdp.close()
    assert.deepEqual([loaded, opened], [[], []])
    assert.deepEqual([...new Set(await reached())], ['tcp 45.5.5.5 80'])
  })

  test('finds no socket of its node or its container', async () => {
    await using _secret = await listenOnNode(`berth-attack-${process.pid}`)
    const lines = (await readFile('/proc/net/unix', 'utf8')).split('\n')
    const ofNode = new Set(lines.flatMap((line) => line.split(/\s+/)[7] ?? []))
    assert.ok(ofNode.has(`@berth-attack-${process.pid}`))
    assert.ok([...ofNode].some((path) => path.includes('containerd.sock')))
    const inContainers = [ownEgress, '/run/containerd/containerd.sock', '/var/run/docker.sock']

    const paths = [...ofNode, ...inContainers].map((path) => path.replace(/^@/, '\0'))
    const connected = await machine.node(connectToUnix(paths))

    // Its connections leave through that one. It takes no settings.
    assert.deepEqual(connected, [ownEgress])
  })

  test('sees and signals no process of its container or its node', async () => {
    const own = await machine.shell('ps -e -o args')
    const signalled = await machine.shell(
      `for pid in ${process.pid} ${target.berth.pid} ${kubelet}; do kill -9 $pid && echo killed $pid; done 2>/dev/null`,
    )

    assert.match(own, /agent\.mjs/)
    assert.doesNotMatch(own, /perl|pod\.mjs|kubelet|containerd|postgres|Xtigervnc/)
    assert.equal(signalled, '')
    assert.equal((await target.berth.request(`/browsers/${session.session_id}`)).status, 200)
  })

  test('finds no token of the cluster, no identity of its pod, and no secret of berth or of the neighbour', async () => {
    const { pathname, search } = new URL(neighbour.cdp_ws_url)
    const identity = await kubectl('get', 'secret', pod, '--output=jsonpath={.data.tls\\.key}')
    const key = Buffer.from(identity, 'base64').toString().split('\n')[1] ?? assert.fail('there is no key')
    const values = [...Object.values(secrets), search.slice('?jwt='.length), pathname.split('/')[2] ?? '', key]
    const patterns = Buffer.from(`${values.join('\n')}\n`).toString('base64')
    const script = [
      `patterns=$(base64 -d <<< '${patterns}')`,
      'grep -rlsaF --devices=skip -f <(echo "$patterns") /etc /home /opt /run /tmp /var /dev/shm 2>/dev/null',
      'cat /proc/[0-9]*/{environ,mountinfo} 2>/dev/null | grep -aoF -f <(echo "$patterns")',
      'true',
    ].join('; ')
    await neighbourMachine.shell(`echo '${values[0]}' > /tmp/of-the-neighbour`)

    const [found, control] = [await machine.shell(script), await neighbourMachine.shell(script)]
    const accounts = await machine.shell('find /var/run/secrets /run/secrets /run/berth -not -type d 2>/dev/null; true')
    const ofCluster = await machine.shell('cat /proc/[0-9]*/environ 2>/dev/null | grep -ac KUBERNETES')

    assert.match(control, /^\/tmp\/of-the-neighbour$/m, 'the search finds what is there')
    assert.deepEqual([found, accounts, ofCluster], ['', ownEgress, '0'])
  })

  test('has no right of root, and changes neither the kernel nor its container', async () => {
    const status = await machine.shell('grep -E "^(CapEff|CapBnd|NoNewPrivs|Seccomp):" /proc/self/status')
    const attempts = {
      'mount a file system': 'mount -t tmpfs none /mnt',
      'mount one as root of another namespace': 'unshare -Urm sh -c "mount -t proc proc /proc && cat /proc/1/environ"',
      'read the disk': 'dd if=/dev/vda of=/dev/null count=1',
      'make a device': 'mknod /tmp/disk b 254 0',
      // Harmless to the host, should it succeed.
      'set a setting': 'value=$(cat /proc/sys/kernel/panic) && echo $value > /proc/sys/kernel/panic',
      'ask the kernel for help': 'echo h > /proc/sysrq-trigger',
      'enter another group': 'echo $$ > /sys/fs/cgroup/memory/cgroup.procs',
      'write to the system': 'touch /usr/bin/attack',
      'trace the first process': 'cat /proc/1/root/etc/shadow /proc/1/mem',
    }
    const succeeded: string[] = []
    for (const [what, command] of Object.entries(attempts)) {
      const output = await machine.shell(`(${command}) >/dev/null 2>&1 && echo succeeded`)
      if (output === 'succeeded') succeeded.push(what)
    }

    assert.match(status, /^CapEff:\t0+$/m)
    assert.match(status, /^NoNewPrivs:\t1$/m)
    assert.match(status, /^Seccomp:\t2$/m)
    assert.deepEqual(succeeded, [])
  })

  test('finds a container without rights around it, should it leave the sandbox', async () => {
    const look = (container: 'machine' | 'egress', script: string) => inContainer(pod, container, script)
    const facts = 'grep -E "^(CapEff|CapBnd|NoNewPrivs|Uid):" /proc/self/status; cat /proc/self/uid_map'
    const writes =
      'for file in /attack /etc/attack /usr/attack /opt/attack; do touch $file 2>/dev/null && echo $file; done; true'

    for (const [container, user] of [
      ['machine', 1000],
      ['egress', 1001],
    ] as const) {
      const found = await look(container, facts)
      assert.match(found, /^CapEff:\t0+$/m)
      assert.match(found, /^CapBnd:\t0+$/m)
      assert.match(found, /^NoNewPrivs:\t1$/m)
      assert.match(found, new RegExp(`^Uid:\t${user}\t${user}`, 'm'))
      // Root of the pod is nobody on the node.
      const [, onNode] = /^\s+0\s+(\d+)\s+\d+$/m.exec(found) ?? []
      assert.ok(Number(onNode) >= 65_536, found)
      assert.equal(await look(container, writes), '')
      assert.equal(await look(container, 'ls /var/run/secrets 2>/dev/null; true'), '')
    }
    // Another user and another container: its key is not the machine's.
    assert.equal(await look('machine', 'cat /run/berth/identity/* 2>/dev/null; true'), '')
  })
})
