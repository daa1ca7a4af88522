const finalText = 0x81
const finalClose = 0x88
const finalPing = 0x89
const finalPong = 0x8a
const maxShortLength = 125

export const closeCodes = { normal: 1000, goingAway: 1001, protocolError: 1002 } as const

/** Frames that the agent itself sends to clients; all are short (RFC 6455 §5.2). */
export function textFrame(text: string): Buffer {
  return frame(finalText, Buffer.from(text))
}

export function pongFrame(payload: Buffer): Buffer {
  return frame(finalPong, payload)
}

export function pingFrame(): Buffer {
  return frame(finalPing, Buffer.alloc(0))
}

export function closeFrame(code: number): Buffer {
  const payload = Buffer.alloc(2)
  payload.writeUInt16BE(code)
  return frame(finalClose, payload)
}

/** The response to a client's close frame: the same code, or none if it had none (RFC 6455 §5.5.1). */
export function closeEcho(payload: Buffer): Buffer {
  return frame(finalClose, payload.subarray(0, 2))
}

function frame(firstByte: number, payload: Buffer): Buffer {
  if (payload.length <= maxShortLength) return Buffer.concat([Buffer.from([firstByte, payload.length]), payload])
  const header = Buffer.from([firstByte, 126, 0, 0])
  header.writeUInt16BE(payload.length, 2)
  return Buffer.concat([header, payload])
}
