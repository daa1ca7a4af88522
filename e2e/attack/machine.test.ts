import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { createServer } from 'node:net'
import { after, before, suite, test } from 'node:test'
import type Kernel from '@onkernel/sdk'
import { CdpClient } from '../testing/cdp.ts'
import { machineOf } from '../testing/machine-of.ts'
import { AttackTarget, canaryPort, secrets, stunPort } from './testing/attack-target.ts'
import { connectTo, connectToUnix, lookUp, sendDatagrams } from './testing/machine-attacks.ts'
import { MachineShell } from './testing/machine-shell.ts'
import { hostAddresses, networksProblem } from './testing/networks.ts'

const { lan, home, public: ownPublic, uniqueLocal } = hostAddresses

suite('a program in a machine', { skip: networksProblem(), timeout: 150_000 }, () => {
  let berth: AttackTarget
  let session: Kernel.BrowserCreateResponse
  /** Another session on the same host, with a display. */
  let neighbour: Kernel.BrowserCreateResponse
  let machine: MachineShell
  let neighbourMachine: MachineShell

  before(async () => {
    berth = await AttackTarget.start()
    const { browsers } = berth.client
    ;[session, neighbour] = await Promise.all([
      browsers.create({ headless: true, timeout_seconds: 600 }),
      browsers.create({ headless: false, timeout_seconds: 600 }),
    ])
    machine = await MachineShell.enter(session.session_id)
    neighbourMachine = await MachineShell.enter(neighbour.session_id)
  })
  after(() => berth?.[Symbol.asyncDispose]())

  /** Returns everything that reached canaries, except for expected connections. */
  async function reached(): Promise<readonly string[]> {
    // This is sent last. When it is reported, everything before it has been reported too.
    await machine.node(connectTo([['45.255.255.255', 80]]))
    await berth.world.until('tcp 45.255.255.255 80')
    const isMeant = (line: string) => /^tcp 45\.(5\.5\.5|255\.255\.255) 80$|^dns /.test(line)
    const found = [...berth.host.reached, ...berth.world.reached.filter((line) => !isMeant(line))]
    berth.forget()
    return found
  }

  test('connects only to public addresses, in any spelling', async () => {
    const open: [string, number][] = [
      ['45.5.5.5', 80],
      ['45.7.7.7', canaryPort],
      ['public.test', 80],
      ['2606:4700::1111', 80],
    ]
    const hosts = [
      ...[lan, home, ownPublic, uniqueLocal, '100.127.0.1', '100.127.0.2', '10.9.9.9', '172.16.0.1'],
      ...['169.254.169.254', '169.254.170.2', '168.63.129.16', 'fd00:ec2::254', 'fe80::1', '64:ff9b::7f00:1'],
      ...['lan.test', 'own.test', 'metadata.test', 'neighbour.test', 'mapped.test', 'LOOPBACK.test.', 'loopback6.test'],
      ...['0xa9fea9fe', '2852039166', `::ffff:${lan}`, 'host.berth.internal'],
    ]
    const own = ['127.0.0.1', 'localhost', '127.1', '0x7f000001', '0', '::1', '::ffff:127.0.0.1', '127.0.0.1.']
    const closed = [...hosts, ...own].flatMap((host) => [berth.port, canaryPort, 80].map((port) => [host, port]))

    const connected = await machine.node<string[]>(connectTo([...open, ...closed]))

    // A session reaches only its own paths at berth's own address: e2e/own-session.test.ts.
    const ownAddresses = ['64:ff9b::7f00:1', 'host.berth.internal'].map((host) => [host, berth.port])
    assert.deepEqual(
      connected,
      [...open, ...ownAddresses].map(([host, port]) => `${host} ${port}`),
    )
    const meant = new Set(['tcp 45.7.7.7 8080', 'tcp 2606:4700::1111 80'])
    assert.deepEqual(
      (await reached()).filter((line) => !meant.has(line)),
      [],
    )
  })

  test('sends no datagrams, and only berth resolves names, whatever server is asked', async () => {
    await machine.node(
      sendDatagrams(
        ['100.127.0.2', '8.8.8.8', '169.254.169.254', '255.255.255.255', '224.0.0.251', lan],
        [53, stunPort],
      ),
    )
    const asked = await machine.node(lookUp(['leak.test', 'public.test', 'host.berth.internal']))

    // The last one is a name of the host. The guard decides about each connection to it.
    assert.deepEqual(asked, ['public.test', 'public.test', 'host.berth.internal', 'host.berth.internal'])
    assert.deepEqual(await reached(), [])
  })

  test('finds no socket of the host, with a path or without one', async (context) => {
    const secret = createServer((socket) => socket.end()).listen(`\0berth-attack-${process.pid}`)
    context.after(() => secret.close())
    await once(secret, 'listening')
    const unix = await Promise.all([process.pid, berth.pid].map((pid) => readFile(`/proc/${pid}/net/unix`, 'utf8')))
    const ofHost = new Set(
      unix
        .join('')
        .split('\n')
        .flatMap((line) => line.split(/\s+/)[7] ?? []),
    )
    assert.ok(ofHost.has(`@berth-attack-${process.pid}`))
    // The kernel reports the name with which a socket was created. The sockets of machines are renamed later.
    for (const path of ofHost) ofHost.add(path.replace(/\.new$/, ''))
    assert.ok(
      [...ofHost].some((path) => path.endsWith(`${machineOf(neighbour.session_id)}/agent.sock`)),
      'the agents’ are among them',
    )
    assert.ok(
      [...ofHost].some((path) => path.includes('.s.PGSQL')),
      'the database’s is among them',
    )

    const connected = await machine.node(connectToUnix([...ofHost].map((path) => path.replace(/^@/, '\0'))))

    assert.deepEqual(connected, [])
  })

  test('sees only its own display', async () => {
    const look = 'ls /tmp/.X11-unix; cat /proc/net/unix | grep -o "@\\?/tmp/.X11-unix.*"; ls /run/kernel'
    const display = (await neighbourMachine.shell(look)).split('\n')
    assert.ok(display.includes('X0') && display.includes('vnc.sock'), display.join())

    const paths = ['\0/tmp/.X11-unix/X0', '/tmp/.X11-unix/X0', '/run/kernel/vnc.sock']
    const own = await neighbourMachine.node(connectToUnix(paths))
    const foreign = await machine.node(connectToUnix(paths))

    assert.ok(Array.isArray(own) && own.length >= 2, 'whoever has the display can reach it')
    assert.deepEqual(foreign, [])
    assert.equal(await machine.shell(look), '')
  })

  test('cannot see or signal processes of the host or of another machine', async () => {
    const own = await machine.shell('ps -e -o args')
    const signalled = await machine.shell(
      `for pid in 1 ${berth.pid}; do kill -9 $pid && echo killed $pid; done 2>/dev/null`,
    )

    assert.match(own, /\/opt\/berth\/programs\/agent\.mjs/)
    assert.doesNotMatch(own, /postgres|packages\/(server|egress)|worker\.mjs|Xtigervnc/)
    assert.ok(!own.includes(machineOf(neighbour.session_id)))
    assert.equal(signalled, '')
    assert.equal((await fetch(`${berth.url}/health`)).status, 200)
  })

  test('finds no secret of berth or of the host in files, environments and command lines', async () => {
    const { pathname, search } = new URL(neighbour.cdp_ws_url)
    const values = [
      ...Object.values(secrets),
      search.slice('?jwt='.length),
      pathname.split('/')[2] ?? '',
      await hostSecret(),
    ]
    const patterns = `${values.join('\n')}\n`
    await neighbourMachine.shell(`cat > /tmp/of-the-neighbour`, patterns)

    const everywhere =
      'grep -rlsaF --devices=skip -f - /etc /home /opt /run /tmp /var /dev/shm; cat /proc/[0-9]*/{environ,cmdline,mountinfo} 2>/dev/null | grep -aoF -f -'
    const script = `patterns=$(cat); for part in ${everywhere
      .split('; ')
      .map((part) => `'${part}'`)
      .join(' ')}; do eval "$part" <<< "$patterns"; done`
    const [found, control] = [await machine.shell(script, patterns), await neighbourMachine.shell(script, patterns)]

    assert.match(control, /^\/tmp\/of-the-neighbour$/m, 'the search finds what is there')
    assert.equal(found, '')
  })

  test('finds no credentials in the configuration of the agent', async () => {
    const config = JSON.parse(await machine.shell('cat /opt/berth/agent.json'))

    assert.deepEqual(
      Object.keys(config).filter((name) => /key|token|secret|jwt|password|url/i.test(name)),
      [],
    )
    for (const value of Object.values(secrets)) assert.ok(!JSON.stringify(config).includes(value))
  })

  test('Chromium has only its own open files', async () => {
    const files = await machine.shell(
      `for pid in $(pgrep -f '^/usr/lib/chromium/chromium' | head -1) $(pgrep -f '^/opt/berth/node'); do ls -l /proc/$pid/fd; done | grep -o ' -> .*' | sort -u`,
    )

    const own =
      /^ ?-> (\/home\/kernel\/|\/tmp\/|\/dev\/(null|urandom|shm\/)|\/usr\/(lib|share)\/|\/opt\/berth\/|\/proc\/|\/memfd:|anon_inode:|pipe:|socket:|.*\/machine\.log$)/
    assert.ok(files.includes('/home/kernel/'))
    assert.deepEqual(
      files.split('\n').filter((line) => !own.test(line)),
      [],
    )
  })

  test('has no more access with its own Chromium than any program', async () => {
    const targets = [
      `http://127.0.0.1:${berth.port}/health`,
      `http://${lan}:${canaryPort}/`,
      'http://169.254.169.254/',
      `http://[${uniqueLocal}]/`,
    ]
    const page = `<script>${targets.map((url) => `new Image().src='${url}';fetch('${url}',{mode:'no-cors'}).then(()=>document.title='reached');`).join('')}
      for (const url of ['stun:45.3.3.3:${stunPort}', 'stun:100.127.0.2:${stunPort}']) { const c = new RTCPeerConnection({iceServers:[{urls:url}]}); c.createDataChannel('x'); c.setLocalDescription() }
      new WebSocket('ws://${lan}:${canaryPort}/')</script>here`
    await machine.shell('cat > /tmp/attack.html', page)
    const chromium = [
      '/usr/lib/chromium/chromium',
      '--headless',
      '--disable-gpu',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--dump-dom',
    ]
    let starts = 0
    // Sometimes it writes nothing and never ends.
    const dump = async (...args: readonly string[]): Promise<string> => {
      const profile = `--user-data-dir=/tmp/hand-${++starts}`
      const output = await machine.run(['/usr/bin/timeout', '--kill-after=1', '15', ...chromium, profile, ...args])
      return output.includes('</html>') || starts > 4 ? output : dump(...args)
    }

    const alone = await dump('--timeout=4000', 'file:///tmp/attack.html')
    const reachedAlone = await reached()
    const open = await dump(publicUrl)

    assert.match(alone, /here<\/body>/)
    assert.doesNotMatch(alone, /<title>reached/)
    assert.deepEqual(reachedAlone, [])
    assert.match(open, /the canary was reached/, 'it is where they lead that keeps them in')
  })

  test('cannot use the token of one session for another', async () => {
    const token = new URL(session.cdp_ws_url).search
    const foreign = neighbour.cdp_ws_url.replace(/\?.*/, token)

    await assert.rejects(CdpClient.open(foreign), /401/)
    await assert.rejects(
      CdpClient.open(neighbour.cdp_ws_url.replace(/.$/, (last) => (last === 'A' ? 'Q' : 'A'))),
      /401/,
    )
    assert.equal((await fetch(`${berth.url}/s/${neighbour.session_id}/json/list${token}`)).status, 401)
    assert.equal(
      (
        await fetch(`${berth.url}/browsers/${neighbour.session_id}`, {
          headers: { authorization: `Bearer ${token.slice(5)}` },
        })
      ).status,
      401,
    )
    assert.equal((await fetch(`${berth.url}/s/${session.session_id}/json/list${token}`)).status, 200)
  })

  test('responds to foreign ids as to unknown ones', async () => {
    const id = `${session.session_id.slice(0, -4)}zzzz`

    await assert.rejects(berth.client.browsers.retrieve(id), { status: 404 })
    await assert.rejects(berth.client.browsers.deleteByID(id), { status: 404 })
    assert.equal((await fetch(`${berth.url}/browsers/${session.session_id}`)).status, 401)
  })

  test('egress and the database have no keys in their environments', async () => {
    const helpers = await processesBeside(berth.pid, /\/egress\/[^/]+\/(main|worker)\.mjs|^\S*postgres\0/)

    for (const name of ['/main.mjs', '/worker.mjs', 'postgres'])
      assert.ok(
        helpers.some((text) => text.includes(name)),
        name,
      )
    for (const value of Object.values(secrets)) assert.ok(helpers.every((text) => !text.includes(value)))
  })
})

/** Returns the matching command lines and environments of berth's processes, found by their network namespace. */
async function processesBeside(pid: number, commandLine: RegExp): Promise<readonly string[]> {
  const network = await readlink(`/proc/${pid}/ns/net`)
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const texts = pids.map(async (other) => {
    if ((await readlink(`/proc/${other}/ns/net`).catch(() => '')) !== network) return ''
    const files = ['cmdline', 'environ'].map((file) => readFile(`/proc/${other}/${file}`, 'utf8').catch(() => ''))
    const [command = '', environment = ''] = await Promise.all(files)
    return commandLine.test(command) ? `${command}${environment}` : ''
  })
  return (await Promise.all(texts)).filter((text) => text !== '')
}

const publicUrl = 'http://45.5.5.5/'

/** A line of a file that only root on the host can read. */
async function hostSecret(): Promise<string> {
  const shadow = await readFile('/etc/shadow', 'utf8')
  return shadow.split('\n', 1)[0] ?? ''
}
