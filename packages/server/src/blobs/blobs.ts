import type { Readable } from 'node:stream'

/** Stores large values under generated names: letters, digits and `-`. */
export interface Blobs {
  /**
   * Stores all of the content or nothing, also in a crash. Resolves when it is durable. A name is written only once:
   * later values get new names, so that readers of an earlier one get all of it. Rejects with BlobExists when the name
   * is taken. Of two concurrent writes, one wins.
   */
  write(name: string, content: AsyncIterable<Uint8Array>): Promise<{ readonly sizeBytes: number }>

  /** Rejects with BlobNotFound. The reader gets the whole blob, even if it is removed meanwhile. */
  read(name: string, range?: BlobRange): Promise<Readable>

  /** Succeeds for an unknown name. */
  remove(name: string): Promise<void>

  /** Lists names that start with `prefix` and were written before the given time. */
  list(filter: BlobFilter): AsyncIterable<string>

  /** Removes incomplete writes that started before the given time. */
  removeUnfinished(before: Date): Promise<void>
}

/** Bytes from `start` on, at most `length` of them. Bytes after the end of the blob are omitted. */
export interface BlobRange {
  readonly start: number
  readonly length?: number
}

export interface BlobFilter {
  readonly prefix?: string
  readonly before: Date
}

export class BlobNotFound extends Error {
  constructor(name: string, options?: ErrorOptions) {
    super(`there is no blob ${name}`, options)
    this.name = 'BlobNotFound'
  }
}

export class BlobExists extends Error {
  constructor(name: string, options?: ErrorOptions) {
    super(`there is a blob ${name} already`, options)
    this.name = 'BlobExists'
  }
}

/** Names become parts of paths and keys, so other characters are rejected. */
export function checkBlobName(name: string): void {
  if (!/^[A-Za-z0-9-]+$/.test(name)) throw new Error(`${name} is not a valid blob name`)
}
