import { once } from 'node:events'
import { chmod, mkdir, rm } from 'node:fs/promises'
import type { Server as HttpServer } from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'
import { dirname } from 'node:path'
import { idPattern, type MachineId, type SessionId } from '@berth/contract/common/ids.ts'
import { maxOwnSessionLineBytes, type OwnSessionLine } from '@berth/contract/egress/own-session.ts'
import { markAsOwnSession } from './own-session-guard.ts'

const lineFeed = 0x0a
const lineLimitMilliseconds = 5_000
/** A browser opens this many connections to one server and some more for WebSockets. */
const maxConnectionsPerSession = 64

interface OwnSessionSocketOptions {
  readonly path: string
  /** Serves the connections once their session is known. */
  readonly server: HttpServer
  /** Egress may send the id of the machine instead of its session. */
  readonly sessionOn: (machineId: MachineId) => SessionId | undefined
}

/**
 * Accepts connections that sessions open to the address of berth itself, which egress forwards. They are served like
 * all others, except that `own-session-guard.ts` limits them to their own session.
 */
export class OwnSessionSocket {
  readonly #server: HttpServer
  readonly #sessionOn: OwnSessionSocketOptions['sessionOn']
  readonly #listener: Server
  readonly #open = new Set<Socket>()
  readonly #perSession = new Map<SessionId, number>()

  private constructor({ server, sessionOn }: OwnSessionSocketOptions) {
    this.#server = server
    this.#sessionOn = sessionOn
    this.#listener = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#admit(socket))
  }

  /**
   * Starts listening and replaces the socket of a server that has ended. Anyone who can enter the socket's folder can
   * connect.
   */
  static async open(options: OwnSessionSocketOptions): Promise<OwnSessionSocket> {
    const { path } = options
    // The folder is never removed while egress may run: egress has this folder mounted, and would not see a new one.
    await mkdir(dirname(path), { recursive: true, mode: 0o755 })
    await rm(path, { force: true })
    const opened = new OwnSessionSocket(options)
    opened.#listener.listen(path)
    await once(opened.#listener, 'listening')
    // The parent folder is closed to other users, and egress has access to this one as a user of its own.
    await chmod(path, 0o666)
    return opened
  }

  async close(): Promise<void> {
    this.#listener.close()
    for (const socket of this.#open) socket.destroy()
    await once(this.#listener, 'close')
  }

  #admit(socket: Socket): void {
    this.#open.add(socket)
    socket.once('close', () => this.#open.delete(socket))
    socket.on('error', () => socket.destroy())
    const late = setTimeout(() => socket.destroy(), lineLimitMilliseconds)
    let read = Buffer.alloc(0)
    const take = (chunk: Buffer) => {
      read = Buffer.concat([read, chunk])
      const end = read.indexOf(lineFeed)
      if (end === -1 && read.length <= maxOwnSessionLineBytes) return
      clearTimeout(late)
      socket.off('data', take)
      socket.pause()
      const id = end === -1 || end > maxOwnSessionLineBytes ? undefined : idIn(read.toString('utf8', 0, end))
      const session = id === undefined ? undefined : (this.#sessionOn(id as MachineId) ?? (id as SessionId))
      if (session === undefined || !this.#count(session, socket)) return void socket.destroy()
      if (end + 1 < read.length) socket.unshift(read.subarray(end + 1))
      markAsOwnSession(socket, session)
      this.#server.emit('connection', socket)
      socket.resume()
    }
    socket.once('close', () => clearTimeout(late))
    socket.on('data', take)
  }

  #count(session: SessionId, socket: Socket): boolean {
    const open = this.#perSession.get(session) ?? 0
    if (open >= maxConnectionsPerSession) return false
    this.#perSession.set(session, open + 1)
    socket.once('close', () => {
      const left = (this.#perSession.get(session) ?? 1) - 1
      if (left === 0) this.#perSession.delete(session)
      else this.#perSession.set(session, left)
    })
    return true
  }
}

function idIn(line: string): string | undefined {
  try {
    const { type, session_id: id } = JSON.parse(line) as Partial<OwnSessionLine>
    return type === 'own-session' && typeof id === 'string' && idPattern.test(id) ? id : undefined
  } catch {
    return undefined
  }
}
