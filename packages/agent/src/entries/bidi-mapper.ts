import { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { startBidiServer } from '../bidi/bidi-server.ts'
import { ClassicConnections } from '../bidi/classic-connections.ts'

process.title = 'bidi-mapper'

/** Closes when the agent ends, whatever the reason. */
const agent = new Socket({ fd: 3 })
agent.on('error', () => process.exit())
agent.on('close', () => process.exit())

// The mapper was written to run in a page, where an unhandled rejection is only a line in the console. Closing a tab
// while it is being attached must not disconnect every client.
process.on('unhandledRejection', () => {})

const sessions = new ClassicConnections((id) => agent.write(`${id}\n`))
createInterface({ input: agent }).on('line', (id) => sessions.close(id))
await startBidiServer(process.argv[2] ?? '', sessions)
agent.write('listening\n')
