import { constants, deflateSync, inflateSync } from 'node:zlib'
import type { Frame } from '../screencast/screencast.ts'

export const encodings = { tight: 7, desktopSize: -223, extendedClipboard: -1063131698 } as const

/** Constants of the extended clipboard: one format, and the actions. */
const textFormat = 1
export const clipboardActions = {
  caps: 1 << 24,
  request: 1 << 25,
  peek: 1 << 26,
  notify: 1 << 27,
  provide: 1 << 28,
} as const
/** The length of a picture has 22 bits. */
export const maxPictureBytes = 4 * 1024 * 1024 - 1
const maxClipboardBytes = 256 * 1024

/** 32 bits per pixel, which the JPEG pictures do not use. */
const pixelFormat = Buffer.from([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0])
const jpegControl = 0x90

export function serverInit({ width, height }: Frame, name: string): Buffer {
  const title = Buffer.from(name)
  const head = Buffer.alloc(4)
  head.writeUInt16BE(width, 0)
  head.writeUInt16BE(height, 2)
  return Buffer.concat([head, pixelFormat, length32(title.length), title])
}

export function newSize(frame: Frame): Buffer {
  return updateOf(frame, encodings.desktopSize, Buffer.alloc(0))
}

/** The whole picture as one rectangle in Tight encoding. */
export function newPicture(frame: Frame): Buffer {
  return updateOf(frame, encodings.tight, Buffer.concat([compactLength(frame.jpeg.length), frame.jpeg]))
}

function updateOf({ width, height }: Frame, encoding: number, content: Buffer): Buffer {
  const head = Buffer.alloc(16)
  head.writeUInt16BE(1, 2) // One rectangle, at the corner.
  head.writeUInt16BE(width, 8)
  head.writeUInt16BE(height, 10)
  head.writeInt32BE(encoding, 12)
  return Buffer.concat([head, content])
}

function compactLength(length: number): Buffer {
  const more = 0x80
  return Buffer.from([jpegControl, (length & 0x7f) | more, ((length >> 7) & 0x7f) | more, (length >> 14) & 0xff])
}

/** Announces that clipboards are exchanged as text, and the maximum length. */
export function clipboardCaps(): Buffer {
  const { caps, request, notify, provide } = clipboardActions
  return extendedCutText(caps | request | notify | provide | textFormat, length32(maxClipboardBytes))
}

export function requestClipboard(): Buffer {
  return extendedCutText(clipboardActions.request | textFormat, Buffer.alloc(0))
}

export function provideClipboard(text: string): Buffer {
  const bytes = Buffer.from(`${text}\0`)
  const content = deflateSync(Buffer.concat([length32(bytes.length), bytes]))
  return extendedCutText(clipboardActions.provide | textFormat, content)
}

/** A client's clipboard message; text is in the message itself or, without the extension, Latin-1. */
export function readCutText(bytes: Buffer): { readonly action: number; readonly text?: string } {
  if (bytes.readInt32BE(4) >= 0) return { action: clipboardActions.provide, text: bytes.toString('latin1', 8) }
  if (bytes.length < 12) return { action: 0 }
  const flags = bytes.readUInt32BE(8)
  // With this bit set, the other bits list the client's capabilities.
  if ((flags & clipboardActions.caps) !== 0) return { action: clipboardActions.caps }
  if ((flags & clipboardActions.provide) === 0 || (flags & textFormat) === 0) return { action: flags }
  // Clients flush their stream without ending it.
  const options = { maxOutputLength: 2 * maxClipboardBytes, finishFlush: constants.Z_SYNC_FLUSH }
  const content = inflateSync(bytes.subarray(12), options)
  const length = Math.min(content.readUInt32BE(0), content.length - 4)
  return { action: clipboardActions.provide, text: textOf(content.subarray(4, 4 + length)) }
}

/** Terminated by a zero byte, with Windows line endings. */
function textOf(bytes: Buffer): string {
  return bytes.toString('utf8').replace(/\0.*$/s, '').replaceAll('\r\n', '\n')
}

function extendedCutText(flags: number, content: Buffer): Buffer {
  const head = Buffer.alloc(12)
  head[0] = 3
  head.writeInt32BE(-(4 + content.length), 4)
  head.writeUInt32BE(flags >>> 0, 8)
  return Buffer.concat([head, content])
}

function length32(length: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(length)
  return bytes
}
