// Runs a command in a network namespace with loopback only. Permitted ports of the host are forwarded through unix
// sockets.
import { spawn } from 'node:child_process'
import { connect, createServer } from 'node:net'

const [relays, ...command] = process.argv.slice(2)
for (const [port, path] of Object.entries(JSON.parse(relays))) {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const host = connect({ path, allowHalfOpen: true })
    client.pipe(host).pipe(client)
    for (const [socket, other] of [
      [client, host],
      [host, client],
    ]) {
      socket.on('error', () => other.destroy())
      socket.on('close', () => other.destroy())
    }
  })
  server.listen(Number(port), '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
}
const child = spawn(command[0], command.slice(1), { stdio: 'inherit' })
child.on('error', (error) => {
  process.stderr.write(`${error.message}\n`)
  process.exit(1)
})
child.on('exit', (code) => process.exit(code ?? 1))
