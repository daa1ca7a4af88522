import { connect, createServer } from 'node:net'
import { pipeline } from 'node:stream'

/** Runs in a network namespace, and leads from a unix socket to a port of its loopback. Arguments: socket and port. */
const [socketPath = '', port = ''] = process.argv.slice(2)

createServer((client) => {
  const server = connect(Number(port), '127.0.0.1')
  pipeline(client, server, client, () => {}) // The end of one side is the other's, however it came.
}).listen(socketPath, () => process.stdout.write('ready\n'))
