import type { Readable } from 'node:stream'

/** Keeps large values under names of our own making: letters, digits and `-`. */
export interface BlobStore {
  /**
   * Keeps all of the content or nothing, also in a crash; resolves when it is on disk. A name is written once: a
   * later value gets a name of its own, so that whoever still reads the earlier one has it whole.
   */
  write(name: string, content: AsyncIterable<Uint8Array>): Promise<{ readonly sizeBytes: number }>

  /** Rejects when there is no such blob. Its reader has it whole, although it is removed meanwhile. */
  read(name: string): Promise<Readable>

  /** An unknown name is fine. */
  remove(name: string): Promise<void>

  /** Every name that was written before the given moment: what no row mentions is what a crash has left. */
  list(before: Date): Promise<readonly string[]>
}
