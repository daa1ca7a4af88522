/** Length of a frame's header up to the place of a mask (RFC 6455 §5.2); undefined while too little of it is known. */
export function headerLengthBeforeMask(bytes: Buffer): number | undefined {
  const second = bytes[1]
  if (second === undefined) return undefined
  const short = second & 0x7f
  return 2 + (short === 126 ? 2 : short === 127 ? 8 : 0)
}

/** The payload length in a complete header. */
export function payloadLength(header: Buffer): number {
  const short = (header[1] ?? 0) & 0x7f
  if (short === 126) return header.readUInt16BE(2)
  return short === 127 ? Number(header.readBigUInt64BE(2)) : short
}
