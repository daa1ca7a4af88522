import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/** Requests of the X protocol, and the one property, by their numbers in it. */
const queryTree = 15
const deleteProperty = 19
const normalHints = 40
const headerLength = 32

/**
 * Takes from all windows of a display the wish for a smallest size, so that the window manager makes them as small as
 * the display. Chromium wishes for 500 pixels, and shows its page well in less. Spoken to the X server directly: there
 * is no kept library for it, and it takes two kinds of requests.
 */
export async function dropSmallestSizes(displayNumber: number): Promise<void> {
  const socket = connect(`/tmp/.X11-unix/X${displayNumber}`)
  try {
    await once(socket, 'connect')
    const reader = new Reader(socket)
    const root = await open(socket, reader)
    for (const frame of await childrenOf(root)) {
      for (const window of [frame, ...(await childrenOf(frame))])
        socket.write(request(deleteProperty, window, normalHints))
    }
    await childrenOf(root) // The server answers in order: by now it has done all of it.

    async function childrenOf(window: number): Promise<readonly number[]> {
      socket.write(request(queryTree, window))
      for (;;) {
        const header = await reader.take(headerLength)
        const isReply = header[0] === 1
        // Errors tell of windows that have gone meanwhile; the one that was asked for may be among them.
        if (header[0] === 0 && header[10] === queryTree) return []
        if (!isReply) continue
        const rest = await reader.take(header.readUInt32LE(4) * 4)
        return Array.from({ length: header.readUInt16LE(16) }, (_, index) => rest.readUInt32LE(index * 4))
      }
    }
  } finally {
    socket.destroy()
  }
}

/** Says hello, in little-endian and without a secret: the socket is the machine's own. Returns the root window. */
async function open(socket: Socket, reader: Reader): Promise<number> {
  socket.write(Buffer.from([0x6c, 0, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0]))
  const header = await reader.take(8)
  const setup = await reader.take(header.readUInt16LE(6) * 4)
  if (header[0] !== 1) throw new Error('the display takes no clients')
  const vendorLength = Math.ceil(setup.readUInt16LE(16) / 4) * 4
  const formats = setup.readUInt8(21)
  return setup.readUInt32LE(32 + vendorLength + formats * 8)
}

function request(opcode: number, ...words: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 + words.length * 4)
  bytes.writeUInt8(opcode)
  bytes.writeUInt16LE(1 + words.length, 2)
  for (const [index, word] of words.entries()) bytes.writeUInt32LE(word, 4 + index * 4)
  return bytes
}

/** Gives out a stream in pieces of wanted lengths. */
class Reader {
  readonly #chunks: AsyncIterator<Buffer>
  #rest = Buffer.alloc(0)

  constructor(socket: Socket) {
    this.#chunks = socket[Symbol.asyncIterator]()
  }

  async take(length: number): Promise<Buffer> {
    while (this.#rest.length < length) {
      const { done, value } = await this.#chunks.next()
      if (done) throw new Error('the display has hung up')
      this.#rest = Buffer.concat([this.#rest, value])
    }
    const taken = this.#rest.subarray(0, length)
    this.#rest = this.#rest.subarray(length)
    return taken
  }
}
