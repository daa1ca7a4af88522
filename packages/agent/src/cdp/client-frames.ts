import { Buffer } from 'node:buffer'
import { headerLengthBeforeMask, payloadLength } from './frame-header.ts'

/** How much of a message is examined: every command that concerns berth is shorter. */
const headBytes = 1024
const maxControlPayload = 125
const maskBytes = 4

const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

export interface ClientFrameHandlers {
  /** Bytes of data frames, to be passed on unchanged. */
  readonly forward: (bytes: Buffer) => void
  /**
   * Receives a message that fits into its head before it is passed on; `true` drops it. A promise delays everything
   * that follows.
   */
  readonly intercept: (message: string) => boolean | Promise<boolean>
  /** Called for a longer message: it and everything that follows are passed on when the promise settles. */
  readonly delayLong: () => Promise<void> | undefined
  /** A message begins. Returns the maximum length of messages for `inspect`; 0 for none. */
  readonly beginMessage: () => number
  /** Receives a complete message that is passed on; undefined if it is longer than that limit. */
  readonly inspect: (message: string | undefined) => void
  readonly ping: (payload: Buffer) => void
  readonly close: (payload: Buffer) => void
  /** The stream is malformed; nothing more is read. */
  readonly malformed: (reason: string) => void
}

interface Frame {
  readonly opcode: number
  readonly isFinal: boolean
  readonly length: number
  readonly mask: Buffer
}

/**
 * Reads what a client sends (RFC 6455 §5). Short messages are examined completely before they are passed on. Of long
 * messages only the head is held until their length is clear; the rest passes through untouched. Control frames are
 * between the client and the agent and are not passed on.
 */
export class ClientFrames {
  readonly #handlers: ClientFrameHandlers
  #header = Buffer.alloc(0)
  #frame: Frame | undefined
  #payloadLeft = 0
  #isInMessage = false
  /** Payload of the control frame that is being read. */
  #control: Buffer[] = []
  /** Frames of the current message that wait for a decision, and their payload so far; undefined once decided. */
  #held: { readonly raw: Buffer[]; readonly head: Buffer[]; headLength: number } | undefined
  /** A copy of the current message for `inspect`; without `parts` when it is too long. */
  #inspected: { parts: Buffer[] | undefined; length: number; readonly limit: number } | undefined
  #isDone = false
  /** Set while a message waits for an earlier one. */
  #isWaiting = false
  /** Data that has arrived meanwhile. */
  readonly #later: Buffer[] = []

  constructor(handlers: ClientFrameHandlers) {
    this.#handlers = handlers
  }

  read(chunk: Buffer): void {
    let offset = 0
    while (!this.#isDone && !this.#isWaiting && offset < chunk.length) {
      offset = this.#frame ? this.#readPayload(chunk, offset) : this.#readHeader(chunk, offset)
    }
    if (this.#isWaiting && offset < chunk.length) this.#later.push(Buffer.from(chunk.subarray(offset)))
  }

  #readHeader(chunk: Buffer, offset: number): number {
    const known = this.#header.length
    const bytes = Buffer.concat([this.#header, chunk.subarray(offset, offset + 14 - known)])
    const length = headerLength(bytes)
    if (length === undefined || bytes.length < length) {
      this.#header = bytes
      return chunk.length
    }
    this.#header = Buffer.alloc(0)
    const header = bytes.subarray(0, length)
    const fault = this.#begin(header)
    if (fault) this.#fail(fault)
    return offset + length - known
  }

  /** Begins a frame, or returns what is wrong with it. */
  #begin(header: Buffer): string | undefined {
    const first = header[0] ?? 0
    const opcode = first & 0x0f
    const isFinal = (first & 0x80) !== 0
    const frame = { opcode, isFinal, length: payloadLength(header), mask: Buffer.from(header.subarray(-4)) }
    if ((first & 0x70) !== 0) return 'a reserved bit is set'
    if (((header[1] ?? 0) & 0x80) === 0) return 'a frame is not masked'
    if (!Number.isSafeInteger(frame.length)) return 'a frame is too long'
    if (opcode >= opcodes.close) {
      if (opcode > opcodes.pong) return 'an unknown opcode'
      if (!isFinal || frame.length > maxControlPayload) return 'a control frame is too long or in parts'
    } else {
      if (opcode > opcodes.binary) return 'an unknown opcode'
      if ((opcode === opcodes.continuation) !== this.#isInMessage) return 'a message is interrupted by another'
      this.#beginData(frame, header)
    }
    this.#frame = frame
    this.#payloadLeft = frame.length
    if (frame.length === 0) this.#endFrame(frame)
    return undefined
  }

  #beginData({ opcode, isFinal }: Frame, header: Buffer): void {
    if (opcode !== opcodes.continuation) {
      this.#held = { raw: [], head: [], headLength: 0 }
      const limit = this.#handlers.beginMessage()
      this.#inspected = limit > 0 ? { parts: [], length: 0, limit } : undefined
    }
    this.#isInMessage = !isFinal
    this.#pass(Buffer.from(header))
  }

  #readPayload(chunk: Buffer, offset: number): number {
    const frame = this.#frame as Frame
    const bytes = chunk.subarray(offset, offset + this.#payloadLeft)
    const position = frame.length - this.#payloadLeft
    this.#payloadLeft -= bytes.length
    if (frame.opcode >= opcodes.close) this.#control.push(unmask(bytes, frame.mask, position))
    else this.#takeData(bytes, frame.mask, position)
    if (this.#payloadLeft === 0) this.#endFrame(frame)
    return offset + bytes.length
  }

  #takeData(bytes: Buffer, mask: Buffer, position: number): void {
    this.#copy(bytes, mask, position)
    this.#pass(bytes)
    const held = this.#held
    if (!held) return
    const head = unmask(bytes.subarray(0, headBytes + 1 - held.headLength), mask, position)
    held.head.push(head)
    held.headLength += head.length
    if (held.headLength <= headBytes) return
    const delayed = this.#handlers.delayLong()
    if (delayed) this.#waitFor(delayed.then(() => false))
    else this.#release()
  }

  #copy(bytes: Buffer, mask: Buffer, position: number): void {
    const inspected = this.#inspected
    if (!inspected?.parts) return
    inspected.length += bytes.length
    if (inspected.length > inspected.limit) inspected.parts = undefined
    else inspected.parts.push(unmask(bytes, mask, position))
  }

  #endInspected(): void {
    const inspected = this.#inspected
    this.#inspected = undefined
    if (inspected) this.#handlers.inspect(inspected.parts && Buffer.concat(inspected.parts).toString('utf8'))
  }

  #endFrame({ opcode, isFinal }: Frame): void {
    this.#frame = undefined
    if (opcode >= opcodes.close) this.#endControl(opcode)
    else if (isFinal) {
      this.#endInspected()
      if (this.#held && !this.#isWaiting) this.#decide(this.#held)
    }
  }

  #endControl(opcode: number): void {
    const payload = Buffer.concat(this.#control)
    this.#control = []
    if (opcode === opcodes.ping) this.#handlers.ping(payload)
    if (opcode === opcodes.close) {
      this.#isDone = true
      this.#handlers.close(payload)
    }
  }

  /** The complete message is here, and it is short. */
  #decide(held: { readonly head: readonly Buffer[] }): void {
    const intercepted = this.#handlers.intercept(Buffer.concat(held.head).toString('utf8'))
    if (intercepted instanceof Promise) this.#waitFor(intercepted)
    else this.#end(intercepted)
  }

  #end(isKept: boolean): void {
    if (isKept) this.#held = undefined
    else this.#release()
  }

  #waitFor(intercepted: Promise<boolean>): void {
    this.#isWaiting = true
    intercepted.then(
      (isKept) => this.#goOn(isKept),
      () => this.#goOn(false),
    )
  }

  #goOn(isKept: boolean): void {
    this.#isWaiting = false
    this.#end(isKept)
    for (const chunk of this.#later.splice(0)) this.read(chunk)
  }

  #pass(bytes: Buffer): void {
    if (this.#held) this.#held.raw.push(Buffer.from(bytes))
    else this.#handlers.forward(bytes)
  }

  #release(): void {
    const raw = this.#held?.raw ?? []
    this.#held = undefined
    if (raw.length > 0) this.#handlers.forward(raw.length === 1 ? (raw[0] as Buffer) : Buffer.concat(raw))
  }

  #fail(reason: string): void {
    this.#isDone = true
    this.#handlers.malformed(reason)
  }
}

function headerLength(bytes: Buffer): number | undefined {
  const beforeMask = headerLengthBeforeMask(bytes)
  const isMasked = ((bytes[1] ?? 0) & 0x80) !== 0
  return beforeMask === undefined ? undefined : beforeMask + (isMasked ? maskBytes : 0)
}

/** `position` is the offset of the first byte within the frame's payload. */
function unmask(bytes: Buffer, mask: Buffer, position: number): Buffer {
  const plain = Buffer.allocUnsafe(bytes.length)
  for (let index = 0; index < bytes.length; index++) {
    plain[index] = (bytes[index] as number) ^ (mask[(position + index) & 3] as number)
  }
  return plain
}
