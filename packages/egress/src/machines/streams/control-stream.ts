import type { Socket } from 'node:net'
import {
  type ConnectionClosed,
  type ControlMessage,
  machineProtocolVersion,
} from '@berth/contract/egress/machine-protocol.ts'
import { parseClosed } from '../protocol/greeting.ts'
import { linesOf, writeLine } from '../protocol/lines.ts'

/** The limit on messages that a machine has not read. Beyond it, the machine is not reading at all. */
const maxUnreadBytes = 1024 * 1024

/** The control connection of a machine. */
export class ControlStream {
  readonly #socket: Socket

  constructor(socket: Socket) {
    this.#socket = socket
  }

  send(message: ControlMessage): void {
    if (this.#socket.writableLength > maxUnreadBytes) this.#socket.destroy()
    else writeLine(this.#socket, message)
  }

  /** Passes on the messages of the machine. Settles when the connection ends. */
  async serve(onClosed: (message: ConnectionClosed) => void): Promise<void> {
    this.send({ type: 'ready', version: machineProtocolVersion })
    for await (const line of linesOf(this.#socket)) {
      const message = parseClosed(line)
      // A newer agent may send other messages.
      if (message) onClosed(message)
    }
  }

  end(): void {
    this.#socket.destroy()
  }
}
