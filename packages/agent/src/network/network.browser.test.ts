import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { agentOperationsPath } from '@berth/contract/agent/agent-protocol.ts'
import type { ConnectGreeting, ConnectionFailure } from '@berth/contract/egress/machine-protocol.ts'
import { type EgressAnswers, startFakeEgress } from '../testing/fake-egress.ts'
import { type StartedAgent, startAgent } from '../testing/start-agent.ts'
import { writeLine } from './json-lines.ts'

/* A machine's network as seen by its programs, with an egress that each test controls. */

let agent: StartedAgent
before(async () => {
  agent = await startAgent()
  await agent.becomesReady()
})
after(() => agent[Symbol.asyncDispose]())

/** Runs a script in the machine and returns its output. */
async function shell(script: string): Promise<string> {
  const { body } = await agent.call('POST', `${agentOperationsPath}/process/exec`, {
    ...{ command: '/bin/bash', args: ['-c', script], timeout_sec: 30 },
  })
  const { stdout_b64 = '', stderr_b64 = '' } = JSON.parse(body)
  return `${Buffer.from(stdout_b64, 'base64')}${Buffer.from(stderr_b64, 'base64')}`.trim()
}

/** `$s` is a connection to the address; the script uses it and prints the result. */
function perl(address: string, script: string): Promise<string> {
  const connect = `my $s = IO::Socket::IP->new(PeerHost => "${address}", Type => SOCK_STREAM) or die "$!\\n"; $s->autoflush;`
  return shell(`perl -MIO::Socket::IP -MSocket -e '${connect} ${script}'`)
}

async function egress(answers: EgressAnswers): Promise<AsyncDisposable> {
  return startFakeEgress(agent, (_request, response) => response.end('<title>page</title>'), answers)
}

/** Navigates; returns the error, and the address that responded. */
async function open(url: string): Promise<{ error: string | undefined; from: string | undefined }> {
  const client = await agent.connect()
  const { targetId } = await client.send('Target.createTarget', { url: 'about:blank' })
  const { sessionId } = await client.send('Target.attachToTarget', { targetId, flatten: true })
  await client.send('Network.enable', {}, sessionId)
  const answered = client.nextEvent('Network.responseReceived')
  const { errorText } = await client.send('Page.navigate', { url }, sessionId)
  const { response } = errorText === undefined ? await answered : { response: undefined }
  await client.send('Target.closeTarget', { targetId })
  client.terminate()
  const { remoteIPAddress, remotePort } = (response ?? {}) as { remoteIPAddress?: string; remotePort?: number }
  return { error: errorText, from: response && `${remoteIPAddress} ${remotePort}` }
}

test('a name with real addresses is connected by address, and others by name', async () => {
  const asked: string[] = []
  await using _egress = await egress({
    lookup: ({ name, family }) => {
      if (name === 'named.test') return { by_name: true }
      const address = family === 4 ? '192.0.2.7' : '2001:db8::7'
      return { addresses: name === (family === 4 ? 'four.test' : 'six.test') ? [address] : [], ttl: 10 }
    },
    connect: ({ host, port }) => {
      asked.push(`${host} ${port}`)
      return { type: 'connected' }
    },
  })

  const found = []
  for (const host of ['four.test', 'six.test', 'named.test:8080', '192.0.2.9', '[2001:db8::9]:81']) {
    found.push((await open(`http://${host}/`)).from)
  }

  assert.deepEqual(found.slice(0, 2), ['192.0.2.7 80', '[2001:db8::7] 80'])
  assert.match(String(found[2]), /^198\.18\.\d+\.\d+ 8080$/)
  assert.deepEqual(found.slice(3), ['192.0.2.9 80', '[2001:db8::9] 81'])
  const expected = ['192.0.2.7 80', '2001:db8::7 80', '192.0.2.9 80', '2001:db8::9 81', 'named.test 8080']
  assert.deepEqual([...new Set(asked)].sort(), expected.sort())
})

test('the page gets the network error that egress reports', async () => {
  const kinds: Readonly<Partial<Record<ConnectionFailure, string>>> = {
    'connection-refused': 'net::ERR_CONNECTION_REFUSED',
    unreachable: 'net::ERR_ADDRESS_UNREACHABLE',
    refused: 'net::ERR_ADDRESS_UNREACHABLE',
    'name-not-found': 'net::ERR_ADDRESS_UNREACHABLE',
    'proxy-failed': 'net::ERR_CONNECTION_REFUSED',
  }
  await using _egress = await egress({
    connect: ({ port }) => ({ type: 'failed', kind: Object.keys(kinds)[port - 8000] as ConnectionFailure }),
  })

  for (const [index, [kind, error]] of Object.entries(kinds).entries()) {
    for (const host of ['name.test', '192.0.2.1', '[2001:db8::1]']) {
      for (const scheme of ['http', 'https']) {
        assert.equal((await open(`${scheme}://${host}:${8000 + index}/`)).error, error, `${kind}, ${scheme}://${host}`)
      }
    }
  }
})

test('each direction of a connection ends separately, and a reset is forwarded as a reset', async () => {
  const ends: string[] = []
  await using _egress = await egress({
    serve: (socket, greeting, control) => serveByPort(socket, greeting, control, ends),
  })

  const halfClosed = await perl('echo.test:1000', 'print $s "hello"; shutdown($s, 1); print <$s>')
  const bytes = await perl(
    'echo.test:1000',
    'if (!fork) { print $s "x" x 1e6 for 1..20; shutdown($s, 1); exit } my $n = 0; while (my $c = sysread($s, my $b, 1e6)) { $n += $c } print $n',
  )
  const reset = await perl(
    'reset.test:1001',
    'print $s "hello"; my $n = sysread($s, my $b, 10); print $b, sysread($s, $b, 10) // $!',
  )
  await perl(
    'hear.test:1002',
    'setsockopt($s, SOL_SOCKET, SO_LINGER, pack("ii", 1, 0)); sysread($s, my $b, 5); close $s',
  )
  await perl('hear.test:1002', 'sysread($s, my $b, 5)')

  assert.equal(halfClosed, 'hello')
  assert.equal(bytes, String(20e6))
  assert.equal(reset, 'last Connection reset by peer'.replace(' ', ''))
  assert.deepEqual(ends, ['reset', 'end'])
})

/**
 * Behaves according to the port: echoes, responds and breaks, or speaks and reports how the program ends. Chromium
 * connects to other ports by itself.
 */
function serveByPort(socket: Socket, { id, port }: ConnectGreeting, control: Socket, ends: string[]): void {
  const say = (how: string) => writeLine(control, { type: 'closed', id, how })
  if (port === 1000) {
    socket.pipe(socket, { end: false })
    socket.once('end', () => {
      say('end')
      socket.end()
    })
  } else if (port === 1001) {
    socket.once('data', () => {
      socket.write('last')
      say('reset')
      socket.end()
    })
  } else if (port === 1002) {
    socket.write('hello')
    socket.resume()
    control.on('data', function hear(chunk: Buffer) {
      for (const line of chunk.toString().trim().split('\n')) {
        const word = JSON.parse(line)
        if (word.id !== id) continue
        ends.push(word.how)
        control.off('data', hear)
      }
    })
  }
}

test('connections end with their egress, and new ones wait for the next egress', async () => {
  const heard = Promise.withResolvers<void>()
  const first = await egress({
    serve: (socket, { port }) => port === 1003 && socket.once('data', () => heard.resolve()).write('hello'),
  })
  const script = 'sysread($s, my $b, 5); print $b; syswrite($s, "heard"); print " ", sysread($s, $b, 5) // $!'
  const broken = perl('one.test:1003', script)
  await heard.promise
  await first[Symbol.asyncDispose]()
  assert.equal(await broken, 'hello Connection reset by peer')

  const waiting = shell('curl -s http://two.test/')
  await using _second = await egress({})
  assert.equal(await waiting, '<title>page</title>')
})

test('queries to any name server, by UDP and TCP, are answered by egress, and other UDP is dropped', async () => {
  await using _egress = await egress({ lookup: () => ({ addresses: ['192.0.2.1'], ttl: 1 }) })
  const question =
    '"\\x12\\x34\\x01\\x00\\x00\\x01\\x00\\x00\\x00\\x00\\x00\\x00\\x04name\\x04test\\x00\\x00\\x01\\x00\\x01"'
  const ask = (server: string, protocol: 'tcp' | 'udp') =>
    shell(`perl -MIO::Socket::IP -MSocket -e 'my $s = IO::Socket::IP->new(PeerHost => "${server}", PeerPort => 53, Type => ${protocol === 'tcp' ? 'SOCK_STREAM' : 'SOCK_DGRAM'}); my $q = ${question};
      syswrite($s, ${protocol === 'tcp' ? 'pack("n", length $q) . $q' : '$q'}); sysread($s, my $a, 600); print join ".", unpack("C4", substr($a, -4))'`)

  for (const server of ['192.0.0.1', '8.8.8.8', '2001:db8::53', 'fd00:6265:7274:68::1']) {
    assert.equal(await ask(server, 'udp'), '192.0.2.1', server)
    assert.equal(await ask(server, 'tcp'), '192.0.2.1', server)
  }
  assert.equal(await shell('getent ahostsv4 name.test | cut -d" " -f1 | sort -u'), '192.0.2.1')
  const other =
    'perl -MIO::Socket::IP -MSocket -e \'my $s = IO::Socket::IP->new(PeerHost => "192.0.2.1", PeerPort => 443, Type => SOCK_DGRAM); syswrite($s, "x"); print sysread($s, my $a, 9) // $!\''
  assert.match(await shell(other), /No route to host|Permission denied|Connection refused/)
})

test('programs can neither reach nor change the setup of their network', async () => {
  const refused = ['127.0.0.1:1', '[::1]:1', '127.0.0.1:9223'].map((address) => perl(address, 'print "open"'))
  const changes = [
    'ip link set eth0 down',
    'ip route flush table 100',
    'ip rule add pref 1 lookup main',
    'nft flush ruleset',
  ]
  const mark = `perl -MSocket -e 'socket(my $s, 2, 1, 0); print setsockopt($s, 1, 36, 1) ? "marked" : $!'`
  const frames = `perl -e 'print socket(my $s, 17, 3, 768) ? "opened" : $!'`

  for (const outcome of await Promise.all(refused)) assert.equal(outcome, 'Connection refused')
  for (const change of changes) {
    assert.match(
      await shell(`PATH=/usr/sbin:/sbin:$PATH ${change}`),
      /Operation not permitted|Permission denied/,
      change,
    )
  }
  assert.match(await shell(mark), /Operation not permitted/)
  assert.match(await shell(frames), /Operation not permitted/)
  const inherited = await shell('readlink /proc/self/fd/*')
  assert.doesNotMatch(inherited, /socket:/)
  assert.match(await shell(`cat /proc/${agent.process.pid}/fd/9 2>&1`), /No such device or address|Permission denied/)
})
