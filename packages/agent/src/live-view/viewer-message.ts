import { z } from 'zod'

/** Text messages of a viewer for which RFB has no message. */
export const ViewerMessage = z.discriminatedUnion('type', [
  /** Text without a key: from an input method, or a dead key. */
  z.strictObject({ type: z.literal('text'), text: z.string().min(1).max(4096) }),
])
export type ViewerMessage = z.infer<typeof ViewerMessage>

/** Undefined if it is not a valid message. */
export function parseViewerMessage(data: Buffer): ViewerMessage | undefined {
  try {
    return ViewerMessage.parse(JSON.parse(data.toString('utf8')))
  } catch {
    return undefined
  }
}
