import { type MessageKind, RfbClientReader } from './rfb-client-reader.ts'

/** Messages that a viewer needs to see the screen. All others would affect the session, or are unknown. */
const permitted: ReadonlySet<MessageKind> = new Set<MessageKind>([
  ...(['version', 'security', 'init'] as const),
  ...(['setPixelFormat', 'setEncodings', 'updateRequest', 'continuousUpdates', 'fence'] as const),
])

/**
 * Passes on those messages of a client that do not change the session. Only complete messages are passed on, with
 * lengths that the display interprets the same way, so that no input can hide in another message.
 */
export class ReadOnlyFilter {
  readonly #reader = new RfbClientReader()

  /** Throws if the data is not RFB. */
  pass(chunk: Buffer): Buffer {
    const messages = this.#reader.read(chunk).filter(({ kind }) => permitted.has(kind))
    return Buffer.concat(messages.map(({ bytes }) => bytes))
  }
}
