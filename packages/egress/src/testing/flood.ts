import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { type TestConnection, TestMachine } from './test-machine.ts'

/** An attacking program in a machine. Arguments: the kind of flood and the machine's socket. */

const [kind = '', socketPath = ''] = process.argv.slice(2)
const server = createServer((socket) => void socket.on('error', () => {}).pipe(socket)).listen(0, '127.0.0.1')
await once(server, 'listening')
const target = `127.0.0.1:${(server.address() as { port: number }).port}`

const floods: Record<string, () => Promise<unknown>> = {
  /** Opens as many connections as it can, repeatedly. */
  async connections() {
    for (let count = 0; count < 18_000; count += 1) {
      open('{"type":"connect","id":1,"host":"127.0.0.1","port":1}\n')
      if (count % 200 === 0) await delay(5)
    }
    begin()
    for (;;) await Promise.all(Array.from({ length: 100 }, () => openAndClose()))
  },
  /** Sends lines without an end, byte by byte, on all connections it gets. */
  async 'unfinished lines'() {
    const sockets = Array.from({ length: 1_500 }, () => open('{"type":"conn'))
    begin()
    for (;;) {
      for (const socket of sockets) if (!socket.destroyed) socket.write('x')
      await delay(1)
    }
  },
  async bytes() {
    const machine = await TestMachine.open(socketPath)
    const connections = await connectAll(machine)
    const chunk = Buffer.alloc(256 * 1024)
    for (const { socket } of connections) {
      socket.resume()
      const more = () => {
        while (socket.write(chunk));
      }
      socket.on('drain', more)
      more()
    }
    begin()
    await once(machine.control, 'close')
  },
  async 'small chunks'() {
    const machine = await TestMachine.open(socketPath)
    const connections = await connectAll(machine)
    for (const { socket } of connections) socket.resume()
    begin()
    for (;;) {
      for (const { socket } of connections) if (socket.writableLength < 1_000) socket.write('x')
      await new Promise(setImmediate)
    }
  },
  async lookups() {
    const socket = open('{"type":"lookup"}\n')
    socket.resume()
    let id = 0
    begin()
    for (;;) {
      const lines = Array.from({ length: 500 }, () => `{"id":${++id},"name":"n${id}.localhost","family":4}\n`)
      if (!socket.write(lines.join(''))) await once(socket, 'drain')
    }
  },
  async 'connections that come and go'() {
    const machine = await TestMachine.open(socketPath)
    begin()
    for (;;) {
      await Promise.all(Array.from({ length: 50 }, async () => machine.reset(await machine.connect(target)))).catch(
        () => {},
      )
    }
  },
}

async function connectAll(machine: TestMachine): Promise<readonly TestConnection[]> {
  const connections: TestConnection[] = []
  // The listener's backlog rejects some connections when many are opened at once.
  while (connections.length < 400)
    connections.push(...(await Promise.all(Array.from({ length: 20 }, () => machine.connect(target)))))
  return connections
}

/** Reports that the flood is at full strength. */
function begin(): void {
  process.stdout.write('begins\n')
}

function open(text: string): Socket {
  const socket = connect(socketPath)
  socket.on('error', () => {})
  socket.write(text)
  return socket
}

async function openAndClose(): Promise<void> {
  const socket = open('{"type":"lookup"}\n')
  await Promise.race([delay(50), once(socket, 'close').catch(() => {})])
  socket.destroy()
}

await floods[kind]?.()
