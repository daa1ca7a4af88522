import { Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { startBidiServer } from '../bidi/bidi-server.ts'
import { ClassicConnections } from '../bidi/classic-connections.ts'

process.title = 'bidi-mapper'

/** The agent's end of it closes with the agent, however that ends. */
const agent = new Socket({ fd: 3 })
agent.on('error', () => process.exit())
agent.on('close', () => process.exit())

// The mapper was written to run in a page, where a promise that nobody waits for is a line in the console: a tab that
// closes while it is attached must not end every client.
process.on('unhandledRejection', () => {})

const sessions = new ClassicConnections((id) => agent.write(`${id}\n`))
createInterface({ input: agent }).on('line', (id) => sessions.close(id))
await startBidiServer(process.argv[2] ?? '', sessions)
agent.write('listening\n')
