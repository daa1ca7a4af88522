import type { Socket } from 'node:net'
import { maxLineBytes } from '@berth/contract/egress/machine-protocol.ts'

const firstLineLimitMilliseconds = 10_000
const lineFeed = 0x0a

/**
 * Reads the first line of a connection and leaves the rest in the socket. Undefined when the line is too long, too late
 * or incomplete.
 */
export async function takeFirstLine(socket: Socket): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  let line = Buffer.alloc(0)
  const giveUp = () => resolve(undefined)
  const read = () => {
    const chunk: Buffer | null = socket.read()
    if (!chunk) return
    line = Buffer.concat([line, chunk])
    const end = line.indexOf(lineFeed)
    if (end === -1 ? line.length >= maxLineBytes : end >= maxLineBytes) return giveUp()
    if (end === -1) return
    socket.off('readable', read)
    if (end + 1 < line.length) socket.unshift(line.subarray(end + 1))
    resolve(line.toString('utf8', 0, end))
  }
  const timer = setTimeout(giveUp, firstLineLimitMilliseconds)
  socket.on('readable', read).once('end', giveUp).once('close', giveUp)
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    socket.off('readable', read).off('end', giveUp).off('close', giveUp)
  }
}

/** Yields the lines of a connection until it ends. Rejects on errors and on lines that are too long. */
export async function* linesOf(socket: Socket): AsyncGenerator<string> {
  let rest = ''
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    const lines = (rest + chunk.toString('latin1')).split('\n')
    rest = lines.pop() ?? ''
    if (rest.length >= maxLineBytes) throw new Error('a line is too long')
    for (const line of lines) {
      if (line.length >= maxLineBytes) throw new Error('a line is too long')
      yield Buffer.from(line, 'latin1').toString()
    }
  }
}

export function writeLine(socket: Socket, message: object): void {
  if (socket.writable) socket.write(`${JSON.stringify(message)}\n`)
}

/** Parses a JSON object, or returns undefined. */
export function parseLine(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}
