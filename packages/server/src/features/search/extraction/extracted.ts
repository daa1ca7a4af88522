/** Changes whenever the same page may give another text: older content in the cache is then not used. */
export const extractorVersion = 'berth-1'

/** A document as it came over the line. */
export interface FetchedDocument {
  readonly bytes: Uint8Array
  readonly contentType: string | undefined
  readonly url: string
}

export interface ExtractedText {
  readonly markdown: string
  readonly text: string
  /** It has little text and much script: what a person sees is made by its scripts. */
  readonly needsScript: boolean
  /** It asks its visitor to prove something, instead of showing what it has. */
  readonly isChallenge: boolean
}

export type Extraction =
  | ({ readonly outcome: 'extracted' } & ExtractedText)
  | { readonly outcome: 'unsupported_type'; readonly type: string }
  | { readonly outcome: 'failed'; readonly reason: string }
