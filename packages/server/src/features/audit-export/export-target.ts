/** The location of exported objects. */
export interface ExportLocation {
  readonly region: string
  readonly bucket: string
  readonly kmsKeyId: string | undefined
}

/** Why an object could not be written, in a message for its owner. */
export class ExportFailure extends Error {
  override readonly name = 'ExportFailure'
}

/** Writes objects to external storage in limited time. Rejects with an ExportFailure. */
export interface ExportTarget {
  put(place: ExportLocation, key: string, content: Buffer): Promise<void>
  remove(place: ExportLocation, key: string): Promise<void>
}
