import { buffer } from 'node:stream/consumers'
import type { Archive } from '@berth/runtime/archive/archive.ts'

/** Pointers are smaller, according to the specification of Git LFS. */
const maxPointerBytes = 1024
const pointer =
  /^version https:\/\/(git-lfs|hawser)\.github\.com\/spec\/v1\r?\n(ext-.*\n)*oid sha256:[0-9a-f]{64}\r?\nsize \d+\s*$/

/** The files that are pointers to content on a Git LFS server. */
export async function listLfsPointers(archive: Archive): Promise<readonly string[]> {
  const found: string[] = []
  for (const { path, kind, sizeBytes } of archive.entries) {
    if (kind !== 'file' || sizeBytes >= maxPointerBytes) continue
    if (isLfsPointer(await buffer(await archive.read(path)))) found.push(path)
  }
  return found
}

export function isLfsPointer(content: Buffer): boolean {
  return pointer.test(content.toString('latin1'))
}
