import type { Readable } from 'node:stream'

/** Keeps large values under names of our own making: letters, digits and `-`. */
export interface BlobStore {
  /**
   * Keeps all of the content or nothing, also in a crash; resolves when it is durable. A name is written once: a
   * later value gets a name of its own, so that whoever still reads the earlier one has it whole. Rejects with
   * BlobExists when the name is taken; of two writes at the same time, one wins.
   */
  write(name: string, content: AsyncIterable<Uint8Array>): Promise<{ readonly sizeBytes: number }>

  /** Rejects with BlobNotFound. Its reader has the blob whole, although it is removed meanwhile. */
  read(name: string, range?: BlobRange): Promise<Readable>

  /** An unknown name is fine. */
  remove(name: string): Promise<void>

  /** The names that begin with `prefix` and were written before the given moment. */
  list(filter: BlobFilter): AsyncIterable<string>

  /** Removes what writes that began before the given moment have left without an end. */
  removeUnfinished(before: Date): Promise<void>
}

/** Bytes from `start` on, at most `length` of them; what lies behind the end of the blob is left out. */
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

/** Names become parts of paths and of keys, so neither may hold anything else. */
export function checkBlobName(name: string): void {
  if (!/^[A-Za-z0-9-]+$/.test(name)) throw new Error(`${name} is no name of a blob`)
}
