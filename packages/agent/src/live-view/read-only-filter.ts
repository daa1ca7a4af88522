import { type MessageKind, RfbClientReader } from './rfb-client-reader.ts'

/** What a viewer needs to see the screen. Everything else would act on the session, or is unknown. */
const permitted: ReadonlySet<MessageKind> = new Set<MessageKind>([
  ...(['version', 'security', 'init'] as const),
  ...(['setPixelFormat', 'setEncodings', 'updateRequest', 'continuousUpdates', 'fence'] as const),
])

/**
 * Passes on those messages of a client that change nothing in the session. Only whole messages are passed on, of lengths
 * that the display reads in the same way, so that no input can hide in another message.
 */
export class ReadOnlyFilter {
  readonly #reader = new RfbClientReader()

  /** Throws at what is no RFB. */
  pass(chunk: Buffer): Buffer {
    const messages = this.#reader.read(chunk).filter(({ kind }) => permitted.has(kind))
    return Buffer.concat(messages.map(({ bytes }) => bytes))
  }
}
