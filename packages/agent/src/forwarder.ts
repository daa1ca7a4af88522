import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'

/** Listens on the machine's loopback as the proxy of every program, and passes each connection on to egress. */
export async function startForwarder(
  port: number,
  egressSocket: string,
): Promise<{ readonly port: number; close(): void }> {
  const open = new Set<Socket>()
  const server: Server = createServer({ allowHalfOpen: true, noDelay: true }, (program) => {
    const egress = connect({ path: egressSocket, allowHalfOpen: true })
    const end = () => {
      refuse()
      program.destroy()
      egress.destroy()
    }
    // An end without a word means that nothing was connected to. A reset tells just that; an ordinary end would be an
    // empty answer to Chromium.
    const refuse = () => {
      if (egress.bytesRead === 0) program.resetAndDestroy()
    }
    egress.once('end', refuse)
    for (const socket of [program, egress]) {
      open.add(socket)
      socket.on('error', end)
      socket.on('close', () => {
        open.delete(socket)
        end()
      })
    }
    // A side that has ended only its own direction still gets what the other has to say.
    program.pipe(egress)
    egress.pipe(program)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as { port: number }).port,
    close() {
      server.close()
      for (const socket of open) socket.destroy()
    },
  }
}
