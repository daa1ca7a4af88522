import { once } from 'node:events'
import { type FSWatcher, readFileSync, watch } from 'node:fs'
import { connect, type NetConnectOpts, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { createServer, type SecureContextOptions, type Server, type TLSSocket } from 'node:tls'
import { identityFiles, podPorts, podProtocols, serverIdentity } from '@berth/contract/agent/machine/machine-pod.ts'
import type { Logger } from '@berth/runtime/process/logger.ts'

const retryMilliseconds = 20
/** From the start of the egress container to the first process of the machine, whose image may still be downloading. */
const startLimitMilliseconds = 60_000
const handshakeLimitMilliseconds = 10_000

interface GatewayOptions {
  /** Contains the identity of this machine; replaced when it is renewed. */
  readonly identityFolder: string
  readonly controlSocket: string
  readonly port: number
  readonly logger: Logger
  /** The ports of the machine's container. */
  readonly ports?: { readonly agent: number; readonly supervisor: number }
}

interface Gateway {
  readonly port: number
  close(): Promise<void>
}

/**
 * The only listener of a pod. Only servers are admitted, by their certificate; they choose the destination by ALPN. It
 * runs in the egress container, so that programs of the machine never see the private key of its identity.
 */
export async function openGateway(options: GatewayOptions): Promise<Gateway> {
  const { identityFolder, controlSocket, port, logger, ports = podPorts } = options
  const destinations: Readonly<Record<string, NetConnectOpts>> = {
    [podProtocols.agent]: { host: '127.0.0.1', port: ports.agent },
    [podProtocols.supervisor]: { host: '127.0.0.1', port: ports.supervisor },
    [podProtocols.egress]: { path: controlSocket },
  }
  const server = createServer(
    {
      ...readIdentity(identityFolder),
      requestCert: true,
      rejectUnauthorized: true,
      minVersion: 'TLSv1.3',
      ALPNProtocols: Object.keys(destinations),
      allowHalfOpen: true,
      noDelay: true,
      handshakeTimeout: handshakeLimitMilliseconds,
    },
    (client) => {
      client.on('error', () => client.destroy())
      const destination = destinations[client.alpnProtocol || '']
      if (!isServer(client) || !destination) return void client.destroy()
      void relay(client, destination)
    },
  )
  server.on('tlsClientError', (error) => logger.warn({ reason: error.message }, 'a connection was refused'))
  server.listen(port)
  await once(server, 'listening')
  const watcher = followIdentity(identityFolder, server, logger)
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return {
    port: (server.address() as { port: number }).port,
    close: async () => {
      watcher.close()
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

function isServer(client: TLSSocket): boolean {
  return client.authorized && client.getPeerCertificate().subjectaltname === `URI:${serverIdentity}`
}

function readIdentity(folder: string): SecureContextOptions {
  const read = (name: string) => readFileSync(join(folder, name))
  return { ca: read(identityFiles.authority), cert: read(identityFiles.certificate), key: read(identityFiles.key) }
}

/** The cluster replaces a link in the folder when the identity is renewed. */
function followIdentity(folder: string, server: Server, logger: Logger): FSWatcher {
  return watch(folder, () => {
    try {
      server.setSecureContext(readIdentity(folder))
    } catch (error) {
      logger.error({ err: error }, 'the renewed identity cannot be used')
    }
  })
}

async function relay(client: TLSSocket, destination: NetConnectOpts): Promise<void> {
  const far = await connectPatiently(client, destination)
  if (!far) return void client.destroy()
  far.on('error', () => client.destroy())
  far.once('close', () => client.destroySoon())
  client.once('close', () => far.destroy())
  client.pipe(far)
  far.pipe(client)
}

/** Retries while the machine's container is starting; the client waits. */
async function connectPatiently(client: TLSSocket, destination: NetConnectOpts): Promise<Socket | undefined> {
  const deadline = performance.now() + startLimitMilliseconds
  while (!client.destroyed && performance.now() < deadline) {
    const socket = connect({ allowHalfOpen: true, noDelay: true, ...destination })
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
    })
    if (isOpen && client.destroyed) socket.destroy()
    else if (isOpen) return socket
    await delay(retryMilliseconds)
  }
  return undefined
}
