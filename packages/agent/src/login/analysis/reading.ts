import { createHash } from 'node:crypto'

/** Results of `readPage` for a document. `at` identifies an element until the document is read again. */
export interface RawField {
  readonly at: number
  readonly type: string
  readonly name: string
  readonly id: string
  readonly autocomplete: string
  readonly inputMode: string
  readonly maxLength: number
  readonly pattern: string
  readonly role: string
  readonly placeholder: string
  readonly label: string
  readonly hint: string
  readonly isRequired: boolean
  readonly isInvalid: boolean
  readonly nativeError: string
  readonly hasValue: boolean
  readonly options?: readonly { readonly value: string; readonly label: string }[]
  readonly group: number
  readonly formTarget: string
  readonly region: Region
  readonly isTabbable: boolean
  readonly isOutOfSight: boolean
  readonly box: Box
  readonly selector: string
}

export interface RawToggle {
  readonly at: number
  readonly type: 'checkbox' | 'radio'
  readonly name: string
  readonly label: string
  readonly isChecked: boolean
  readonly isRequired: boolean
  readonly group: number
  readonly region: Region
  readonly selector: string
}

export interface RawControl {
  readonly at: number
  readonly tag: string
  readonly role: string
  readonly label: string
  readonly href: string
  /** Class names, ids and similar, which name providers that a label does not. */
  readonly marks: string
  /** The text around it. */
  readonly context: string
  readonly isSubmit: boolean
  readonly formTarget: string
  readonly formHasFields: boolean
  readonly isDisabled: boolean
  readonly isPressed: boolean
  readonly hasPopup: boolean
  readonly group: number
  readonly region: Region
  readonly isOutOfSight: boolean
  readonly box: Box
  readonly selector: string
}

export type Region = '' | 'dialog' | 'footer' | 'nav' | 'header' | 'search'

interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

export interface RawMessage {
  readonly text: string
  readonly kind: 'alert' | 'status' | 'marked' | 'red'
  readonly isError: boolean
  readonly isButton: boolean
}

export interface RawDocument {
  readonly fields: readonly RawField[]
  readonly toggles: readonly RawToggle[]
  readonly controls: readonly RawControl[]
  readonly messages: readonly RawMessage[]
  readonly headings: readonly string[]
  readonly frames: readonly { readonly source: string; readonly title: string; readonly isShown: boolean }[]
  readonly captchas: readonly { readonly kind: 'frame' | 'box'; readonly isLarge: boolean }[]
  readonly hiddenLinks: readonly { readonly label: string; readonly href: string }[]
  /** Elements that may have a closed shadow tree. */
  readonly hosts: readonly number[]
  readonly url: string
  readonly origin: string
  readonly ancestors: readonly string[]
  readonly title: string
  readonly text: string
  readonly readyState: string
  readonly isBusy: boolean
  readonly hasCaptchaToken: boolean
  readonly hasRefresh: boolean
  readonly width: number
  readonly height: number
}

/** A document of the page and its position among the frames: the first is the page's own. */
export interface FrameReading extends RawDocument {
  readonly index: number
  readonly documentId: string
}

export type InFrame<Item> = Item & { readonly frame: number }

/** Everything that was read from a page at one moment. */
export interface PageReading {
  readonly targetId: string
  readonly frames: readonly FrameReading[]
  readonly fields: readonly InFrame<RawField>[]
  readonly toggles: readonly InFrame<RawToggle>[]
  readonly controls: readonly InFrame<RawControl>[]
  readonly messages: readonly RawMessage[]
  readonly headings: readonly string[]
  readonly text: string
  readonly url: string
  readonly title: string
}

const maxText = 16_000

export function pageReading(targetId: string, frames: readonly FrameReading[]): PageReading {
  const [main] = frames
  const inFrames = <Item>(of: (frame: FrameReading) => readonly Item[]) =>
    frames.flatMap((frame) => of(frame).map((item) => ({ ...item, frame: frame.index })))
  return {
    targetId,
    frames,
    fields: inFrames(({ fields }) => fields),
    toggles: inFrames(({ toggles }) => toggles),
    controls: inFrames(({ controls }) => controls),
    messages: frames.flatMap(({ messages }) => messages),
    headings: frames.flatMap(({ headings }) => headings),
    text: frames
      .map(({ text }) => text)
      .join('\n')
      .slice(0, maxText),
    url: main?.url ?? '',
    title: main?.title ?? '',
  }
}

/** Changes with anything that was read. */
export function signatureOf(reading: PageReading): string {
  const { targetId, frames, url, text, messages, controls } = reading
  const states = frames.map(({ readyState, fields }) => [readyState, fields.map(({ isInvalid }) => isInvalid)])
  return createHash('sha256')
    .update(JSON.stringify([targetId, url, text.replace(/\d+/g, ''), messages.map(({ text: said }) => said), states]))
    .update(JSON.stringify([frames.map(({ documentId }) => documentId), controls.length]))
    .digest('hex')
}
