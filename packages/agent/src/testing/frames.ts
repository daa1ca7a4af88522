export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

interface FrameParts {
  readonly opcode: number
  readonly payload: Buffer
  readonly isFinal?: boolean
  /** Clients mask their frames; without a mask it is a server's frame. */
  readonly mask?: Buffer
  /** Writes the length in more bytes than necessary: 2 or 8. */
  readonly lengthBytes?: 0 | 2 | 8
}

/** One websocket frame, in any form that RFC 6455 §5.2 allows. */
export function encodeFrame({ opcode, payload, isFinal = true, mask, lengthBytes }: FrameParts): Buffer {
  const extra = lengthBytes ?? (payload.length <= 125 ? 0 : payload.length <= 65_535 ? 2 : 8)
  const header = Buffer.alloc(2 + extra)
  const maskBit = mask ? 0x80 : 0
  header[0] = (isFinal ? 0x80 : 0) | opcode
  header[1] = maskBit | (extra === 0 ? payload.length : extra === 2 ? 126 : 127)
  if (extra === 2) header.writeUInt16BE(payload.length, 2)
  if (extra === 8) header.writeBigUInt64BE(BigInt(payload.length), 2)
  if (!mask) return Buffer.concat([header, payload])
  const masked = Buffer.from(payload.map((byte, index) => byte ^ (mask[index & 3] as number)))
  return Buffer.concat([header, mask, masked])
}

/** Splits bytes at the given offsets. */
export function cutAt(bytes: Buffer, offsets: readonly number[]): readonly Buffer[] {
  const edges = [0, ...offsets.map((offset) => offset % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  // Copies, because every chunk of a socket has memory of its own, which the reader must not keep using.
  return edges.slice(1).map((end, index) => Buffer.from(bytes.subarray(edges[index], end)))
}
