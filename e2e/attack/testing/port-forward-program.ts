import { connect, createServer } from 'node:net'
import { pipeline } from 'node:stream'

/** Runs in a network namespace and forwards a unix socket to a port of its loopback. Arguments: socket and port. */
const [socketPath = '', port = ''] = process.argv.slice(2)

createServer((client) => {
  const server = connect(Number(port), '127.0.0.1')
  pipeline(client, server, client, () => {}) // Closes both sides together.
}).listen(socketPath, () => process.stdout.write('ready\n'))
