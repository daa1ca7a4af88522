/** Incremented when the same page may give another text. Content of other versions in the cache is then not used. */
export const extractorVersion = 'berth-1'

/** A document as it was received. */
export interface FetchedDocument {
  readonly bytes: Uint8Array
  readonly contentType: string | undefined
  readonly url: string
}

export interface ExtractedText {
  readonly markdown: string
  readonly text: string
  /** The page has little text and many scripts, so its visible content is created by them. */
  readonly needsScript: boolean
  /** The page asks the visitor for a proof instead of showing its content. */
  readonly isChallenge: boolean
}

export type Extraction =
  | ({ readonly outcome: 'extracted' } & ExtractedText)
  | { readonly outcome: 'unsupported_type'; readonly type: string }
  | { readonly outcome: 'failed'; readonly reason: string }
