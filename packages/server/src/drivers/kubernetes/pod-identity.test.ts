import assert from 'node:assert/strict'
import type { AddressInfo, Server } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { podProtocols } from '@berth/contract/agent/machine/machine-pod.ts'
import type { MachineId } from '@berth/contract/common/ids.ts'
import { systemClock } from '@berth/runtime/async/clock.ts'
import { CertificateAuthority, type Identity } from './certificates.ts'
import { PodLink } from './pod-link.ts'

const [own, other] = ['mchown' as MachineId, 'mchother' as MachineId]

async function newAuthority(): Promise<CertificateAuthority> {
  const { certificate, key } = await CertificateAuthority.create(systemClock.now())
  return CertificateAuthority.load(certificate, new Uint8Array(key))
}

/** Listens like a pod, as far as identities matter: requires a server's certificate and reports who connected. */
async function listenAs({ authority, certificate, key }: Identity, context: TestContext): Promise<number> {
  const server = createTlsServer(
    {
      ...{ ca: authority, cert: certificate, key, requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3' },
      ALPNProtocols: Object.values(podProtocols),
    },
    (client) => client.end(`hello ${client.getPeerCertificate().subjectaltname}`),
  )
  server.on('tlsClientError', () => {})
  return listen(server, context)
}

async function listen(server: Server, context: TestContext): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  context.after(() => server.close())
  return (server.address() as AddressInfo).port
}

async function call(link: PodLink, port: number): Promise<string> {
  const connection = await link.connect({ machineId: own, host: '127.0.0.1', port }, podProtocols.agent)
  try {
    return await text(connection)
  } finally {
    connection.destroy()
  }
}

test('a server reaches the machine that it connects to', async (context) => {
  const authority = await newAuthority()
  const port = await listenAs(await authority.issueToMachine(own, systemClock.now()), context)

  const heard = await call(new PodLink(authority, systemClock), port)

  assert.equal(heard, 'hello URI:berth://server')
})

test('a machine cannot impersonate another one, including one of another installation, or use an expired identity', async (context) => {
  const [authority, foreign] = [await newAuthority(), await newAuthority()]
  const now = systemClock.now()
  const link = new PodLink(authority, systemClock)
  const listeners = {
    another: await authority.issueToMachine(other, now),
    foreign: await foreign.issueToMachine(own, now),
    old: await authority.issueToMachine(own, new Date(now.getTime() - 48 * 3_600_000)),
    server: await authority.issueToServer(now),
  }

  for (const [name, identity] of Object.entries(listeners)) {
    const port = await listenAs(identity, context)
    await assert.rejects(call(link, port), name)
  }
})

test('a machine cannot connect to another with its own identity', async (context) => {
  const authority = await newAuthority()
  const now = systemClock.now()
  const port = await listenAs(await authority.issueToMachine(own, now), context)
  const machine = await authority.issueToMachine(other, now)

  const heard = await call(new PodLink({ issueToServer: async () => machine }, systemClock), port).catch(
    () => 'refused',
  )

  // The caller learns of the rejection after its own part of the handshake, by an error or by the end of the
  // connection.
  assert.doesNotMatch(heard, /hello/)
})
