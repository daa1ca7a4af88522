import type { Socket } from 'node:net'
import { maxLineBytes } from '@berth/contract/egress/machine-protocol.ts'
import type { BulkSocket } from '@berth/runtime/stream/bulk-socket.ts'

const lineFeed = 10

export function writeLine(socket: Socket, message: object): void {
  socket.write(`${JSON.stringify(message)}\n`)
}

/**
 * Calls with each line. A line that is too long or not JSON ends the connection, and so does the end of the other side.
 */
export function readLines<Message>(socket: Socket, onMessage: (message: Message) => void): void {
  let rest: Buffer = Buffer.alloc(0)
  socket.once('end', () => socket.destroy())
  socket.on('data', (chunk: Buffer) => {
    let bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk
    for (let end = bytes.indexOf(lineFeed); end >= 0; end = bytes.indexOf(lineFeed)) {
      const message = parse<Message>(bytes.subarray(0, end))
      if (!message) return void socket.destroy()
      onMessage(message)
      bytes = bytes.subarray(end + 1)
    }
    rest = bytes
    if (rest.length >= maxLineBytes) socket.destroy()
  })
}

/** The first line. Later data stays in the paused socket. Undefined if the socket ends or sends something else. */
export function readFirstLine<Message>(socket: Socket): Promise<Message | undefined> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0)
    const finish = (message: Message | undefined) => {
      socket.off('readable', take).off('close', fail).off('end', fail)
      resolve(message)
    }
    const fail = () => finish(undefined)
    const take = () => {
      const chunk: Buffer | null = socket.read()
      if (chunk === null) return
      bytes = Buffer.concat([bytes, chunk])
      const end = bytes.indexOf(lineFeed)
      if (end < 0) return bytes.length >= maxLineBytes ? fail() : undefined
      if (end + 1 < bytes.length) socket.unshift(bytes.subarray(end + 1))
      finish(parse<Message>(bytes.subarray(0, end)))
    }
    socket.on('readable', take).once('close', fail).once('end', fail)
  })
}

/** As `readFirstLine` for a bulk socket, with the data that follows the line; the socket is paused. */
export function readBulkFirstLine<Message>(
  socket: BulkSocket,
): Promise<{ readonly message: Message | undefined; readonly rest: Buffer }> {
  return new Promise((resolve) => {
    let bytes = Buffer.alloc(0)
    const finish = (message: Message | undefined, rest = Buffer.alloc(0)) => {
      socket.off('close', fail).off('end', fail).pause()
      resolve({ message, rest })
    }
    const fail = () => finish(undefined)
    socket.consume((chunk) => {
      bytes = Buffer.concat([bytes, chunk])
      const end = bytes.indexOf(lineFeed)
      if (end >= 0) finish(parse<Message>(bytes.subarray(0, end)), bytes.subarray(end + 1))
      else if (bytes.length >= maxLineBytes) fail()
      return true
    })
    socket.once('close', fail).once('end', fail).resume()
  })
}

function parse<Message>(line: Buffer): Message | undefined {
  try {
    const message: unknown = JSON.parse(line.toString())
    return typeof message === 'object' && message !== null ? (message as Message) : undefined
  } catch {
    return undefined
  }
}
