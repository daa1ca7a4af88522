/** Where objects go. */
export interface ExportPlace {
  readonly region: string
  readonly bucket: string
  readonly kmsKeyId: string | undefined
}

/** Why an object did not get there, in words that its owner may see. */
export class ExportFailure extends Error {
  override readonly name = 'ExportFailure'
}

/** Writes objects to other people's storage, in bounded time. Rejects with an ExportFailure. */
export interface ExportTarget {
  put(place: ExportPlace, key: string, content: Buffer): Promise<void>
  remove(place: ExportPlace, key: string): Promise<void>
}
