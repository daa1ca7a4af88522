import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'

/** Prints each connection and greets it. Runs in a network namespace of its own. The arguments are ports. */
for (const port of process.argv.slice(2)) {
  const server = createServer(print)
  server.listen(Number(port), '::')
  await once(server, 'listening')
}
process.stdout.write('ready\n')

function print(socket: Socket): void {
  socket.on('error', () => {})
  process.stdout.write(`${socket.localAddress?.replace('::ffff:', '')} ${socket.localPort}\n`)
  socket.once('data', (data) => {
    process.stdout.write(`${socket.localAddress?.replace('::ffff:', '')} ${socket.localPort} said ${data.length > 0}\n`)
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ncanary')
  })
}
