/** Client messages by their first byte (RFC 6143 §7.5, and common extensions). */
const types = {
  setPixelFormat: 0,
  setEncodings: 2,
  updateRequest: 3,
  key: 4,
  pointer: 5,
  cutText: 6,
  continuousUpdates: 150,
  fence: 248,
  xvp: 250,
  setDesktopSize: 251,
  qemu: 255,
} as const

export type MessageKind = 'version' | 'security' | 'init' | keyof typeof types

export interface ClientMessage {
  readonly kind: MessageKind
  readonly bytes: Buffer
}

const kinds = new Map<number, keyof typeof types>(
  Object.entries(types).map(([kind, type]) => [type, kind as keyof typeof types]),
)

/** The only version whose handshake has the same steps for every security type. */
export const rfbVersion = Buffer.from('RFB 003.008\n')
/** The security type None. */
export const noSecurity = 1

/** Far more than the clipboard limit. */
const maxMessageBytes = 1024 * 1024
const extendedPointer = -316

/** Splits the data of an RFB client into messages. Throws at an unknown message: nothing after it can be understood. */
export class RfbClientReader {
  #unread: Buffer = Buffer.alloc(0)
  readonly #handshake: MessageKind[] = ['version', 'security', 'init']
  /** Whether pointer messages may have another byte, for more than eight buttons. */
  #hasExtendedPointer = false

  read(chunk: Buffer): readonly ClientMessage[] {
    this.#unread = this.#unread.length === 0 ? chunk : Buffer.concat([this.#unread, chunk])
    const messages: ClientMessage[] = []
    for (let next = this.#take(); next; next = this.#take()) messages.push(next)
    return messages
  }

  #take(): ClientMessage | undefined {
    const step = this.#handshake[0]
    const kind = step ?? this.#kind()
    if (kind === undefined) return undefined
    const length = step ? (step === 'version' ? rfbVersion.length : 1) : this.#lengthOf(kind)
    if (length !== undefined && length > maxMessageBytes) throw new Error(`a message of ${length} bytes is too long`)
    if (length === undefined || this.#unread.length < length) return undefined
    const message = { kind, bytes: this.#unread.subarray(0, length) }
    this.#unread = this.#unread.subarray(length)
    if (step) this.#passHandshake(message)
    else if (kind === 'setEncodings') this.#hasExtendedPointer = encodingsIn(message.bytes).includes(extendedPointer)
    return message
  }

  #passHandshake({ kind, bytes }: ClientMessage): void {
    if (kind === 'version' && !bytes.equals(rfbVersion))
      throw new Error('the version of the client must be RFB 003.008')
    if (kind === 'security' && bytes[0] !== noSecurity) throw new Error('the security type of the client must be None')
    this.#handshake.shift()
  }

  #kind(): keyof typeof types | undefined {
    const type = this.#unread[0]
    if (type === undefined) return undefined
    const kind = kinds.get(type)
    if (!kind) throw new Error(`the message type ${type} is unknown`)
    return kind
  }

  /** Undefined while too little of the message has arrived. */
  #lengthOf(kind: MessageKind): number | undefined {
    const bytes = this.#unread
    switch (kind) {
      case 'setPixelFormat':
        return 20
      case 'setEncodings':
        return bytes.length < 4 ? undefined : 4 + 4 * bytes.readUInt16BE(2)
      case 'updateRequest':
      case 'continuousUpdates':
        return 10
      case 'key':
        return 8
      case 'pointer':
        return bytes.length < 2 ? undefined : this.#hasExtendedPointer && ((bytes[1] ?? 0) & 0x80) !== 0 ? 7 : 6
      case 'cutText':
        // A negative length marks the extended clipboard.
        return bytes.length < 8 ? undefined : 8 + Math.abs(bytes.readInt32BE(4))
      case 'fence':
        return bytes.length < 9 ? undefined : 9 + (bytes[8] ?? 0)
      case 'xvp':
        return 4
      case 'setDesktopSize':
        return bytes.length < 7 ? undefined : 8 + 16 * (bytes[6] ?? 0)
      case 'qemu':
        return bytes.length < 2 ? undefined : qemuLength(bytes[1])
      default:
        return undefined
    }
  }
}

function qemuLength(subtype: number | undefined): number {
  if (subtype !== 0) throw new Error(`the QEMU message ${subtype} is unknown`)
  return 12
}

export function encodingsIn(bytes: Buffer): readonly number[] {
  return Array.from({ length: bytes.readUInt16BE(2) }, (_, index) => bytes.readInt32BE(4 + 4 * index))
}
