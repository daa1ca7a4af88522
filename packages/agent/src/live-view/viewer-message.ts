import { z } from 'zod'

/** What a viewer sends as text, beside RFB, for which there is no message. */
export const ViewerMessage = z.discriminatedUnion('type', [
  /** Text that no key of the viewer stands for: from an input method, or a dead key. */
  z.strictObject({ type: z.literal('text'), text: z.string().min(1).max(4096) }),
])
export type ViewerMessage = z.infer<typeof ViewerMessage>

/** Undefined when it is no message of a viewer. */
export function parseViewerMessage(data: Buffer): ViewerMessage | undefined {
  try {
    return ViewerMessage.parse(JSON.parse(data.toString('utf8')))
  } catch {
    return undefined
  }
}
