import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSocketServer, type Server, type Socket } from 'node:net'
import {
  type ConnectGreeting,
  type ConnectionFailed,
  type ConnectionOpened,
  type LookupAnswer,
  type LookupRequest,
  type MachineGreeting,
  machineProtocolVersion,
} from '@berth/contract/egress/machine-protocol.ts'
import { readFirstLine, readLines, writeLine } from '../network/json-lines.ts'
import type { StartedAgent } from './start-agent.ts'

/** Responses of the fake egress; omitted ones succeed. */
export interface EgressAnswers {
  readonly lookup?: (request: LookupRequest) => Omit<LookupAnswer, 'id'> | Promise<Omit<LookupAnswer, 'id'>>
  readonly connect?: (greeting: ConnectGreeting) => ConnectionOpened | ConnectionFailed
  /** Handles a connection that was opened; absent: it is plain HTTP. */
  readonly serve?: (socket: Socket, greeting: ConnectGreeting, control: Socket) => void
}

/**
 * Replaces egress: every name travels with its connection, and all connections lead to one HTTP server, which sees the
 * whole URL of each request.
 */
export async function startFakeEgress(
  agent: Pick<StartedAgent, 'config'>,
  answer: RequestListener,
  { lookup, connect, serve }: EgressAnswers = {},
): Promise<AsyncDisposable> {
  const http = createServer((request, response) => {
    request.url = `http://${request.headers.host}${request.url}`
    answer(request, response)
  })
  const sockets = new Set<Socket>()
  let control: Socket | undefined
  const server: Server = createSocketServer({ allowHalfOpen: true }, async (socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
    const greeting = await readFirstLine<MachineGreeting>(socket)
    switch (greeting?.type) {
      case 'control':
        control = socket
        writeLine(socket, { type: 'ready', version: machineProtocolVersion })
        socket.resume()
        break
      case 'lookup':
        readLines<LookupRequest>(socket, async (request) => {
          writeLine(socket, { by_name: true, ...(await lookup?.(request)), id: request.id })
        })
        break
      case 'connect': {
        const opened = connect?.(greeting) ?? { type: 'connected' as const }
        writeLine(socket, opened)
        if (opened.type === 'failed' || !control) return void socket.end()
        if (serve) return serve(socket, greeting, control)
        announceEnds(socket, greeting.id, control)
        http.emit('connection', socket)
        break
      }
      default:
        socket.destroy()
    }
  })
  server.listen({ path: agent.config.egress_socket, writableAll: true, readableAll: true })
  await once(server, 'listening')
  return {
    async [Symbol.asyncDispose]() {
      // The agent must notice the end before another egress starts.
      if (control && !control.closed) await new Promise((resolve) => control?.once('close', resolve).end())
      for (const socket of sockets) socket.destroy()
      http.close()
      server.close()
    },
  }
}

/** As in egress, the message precedes the end. */
function announceEnds(socket: Socket, id: number, control: Socket): void {
  const end = socket.end.bind(socket) as (...args: unknown[]) => Socket
  socket.end = ((...args: unknown[]) => {
    writeLine(control, { type: 'closed', id, how: 'end' })
    return end(...args)
  }) as Socket['end']
}
