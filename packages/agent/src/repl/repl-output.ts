import { readFileSync } from 'node:fs'
import { inspect } from 'node:util'
import type { ReplContent } from '@berth/contract/agent/operations/repl-operations.ts'
import type { Channel } from '../script-process/captured-output.ts'
import { type FromRepl, limits } from './repl-messages.ts'

/** Enough to recognize a value; more would fill the response. */
const inspection = { depth: 4, maxArrayLength: 100, maxStringLength: 10_000, breakLength: 120 }

type ImageType = Extract<ReplContent, { type: 'image' }>['mime_type']

/** The output of code in order, up to the limit of one response. */
export class ReplOutput {
  readonly #send: (message: FromRepl) => void
  #isCalled = false
  #textBytes = 0
  #imageBytes = 0
  #itemsBetween = 0

  constructor(send: (message: FromRepl) => void) {
    this.#send = send
  }

  beginCall(): void {
    this.#isCalled = true
  }

  /** Later output belongs to the next response. */
  endCall(): void {
    this.#isCalled = false
    this.#textBytes = 0
    this.#imageBytes = 0
    this.#itemsBetween = 0
  }

  write(value: unknown): void {
    this.text('write', typeof value === 'string' ? value : inspect(value, inspection))
  }

  text(channel: Channel | 'write', text: string): void {
    if (text === '' || !this.#hasRoom()) return
    const bytes = Buffer.from(text)
    const left = limits.textBytes - this.#textBytes
    this.#textBytes += bytes.length
    if (left > 0) this.#send({ type: 'item', item: { type: 'text', channel, text: whole(bytes.subarray(0, left)) } })
    if (bytes.length > left) this.#send({ type: 'cut' })
  }

  /** Takes the bytes of an image, raw or in base64, or the path of its file. */
  emitImage(image: unknown): void {
    const bytes = imageBytes(image)
    const mimeType = imageType(bytes)
    if (!mimeType) throw new TypeError('emitImage: the image must be PNG, JPEG or WebP.')
    if (bytes.length > limits.imageBytes)
      throw new RangeError(`emitImage: an image has at most ${limits.imageBytes} bytes.`)
    if (!this.#hasRoom()) return
    if (this.#imageBytes + bytes.length > limits.imagesBytes) this.#send({ type: 'cut' })
    else {
      this.#imageBytes += bytes.length
      this.#send({ type: 'item', item: { type: 'image', mime_type: mimeType, data_b64: bytes.toString('base64') } })
    }
  }

  #hasRoom(): boolean {
    if (this.#isCalled) return true
    this.#itemsBetween += 1
    if (this.#itemsBetween === limits.itemsBetweenCalls + 1) this.#send({ type: 'cut' })
    return this.#itemsBetween <= limits.itemsBetweenCalls
  }
}

/** Without an incomplete character at the end. */
function whole(bytes: Buffer): string {
  return new TextDecoder().decode(bytes, { stream: true })
}

function imageBytes(image: unknown): Buffer {
  if (ArrayBuffer.isView(image)) return Buffer.from(image.buffer, image.byteOffset, image.byteLength)
  if (image instanceof ArrayBuffer) return Buffer.from(image)
  if (typeof image === 'string') {
    const [, base64] = /^data:[^,]*;base64,(.*)$/s.exec(image) ?? []
    if (base64 !== undefined) return Buffer.from(base64, 'base64')
    return image.startsWith('/') && image.length < 4096 && !image.startsWith('/9j/')
      ? readFileSync(image)
      : Buffer.from(image, 'base64')
  }
  throw new TypeError('emitImage takes the bytes of an image, its base64, or the path of its file.')
}

/** Determined by its first bytes, not by its name. */
function imageType(bytes: Buffer): ImageType | undefined {
  if (bytes.subarray(0, 4).equals(Buffer.from([0x89, 0x50, 0x4e, 0x47]))) return 'image/png'
  if (bytes.subarray(0, 3).equals(Buffer.from([0xff, 0xd8, 0xff]))) return 'image/jpeg'
  if (bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP') return 'image/webp'
  return undefined
}
