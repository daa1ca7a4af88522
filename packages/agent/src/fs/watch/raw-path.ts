import { lstat, readdir } from 'node:fs/promises'
import { type KnownFile, knownFile } from './changes.ts'

/* Paths as bytes in a latin1 string: a file name may not be UTF-8, and must still be found. */

const batchSize = 64

export function toKey(path: string): string {
  return Buffer.from(path).toString('latin1')
}

export function toBytes(key: string): Buffer {
  return Buffer.from(key, 'latin1')
}

export function toText(key: string): string {
  return toBytes(key).toString()
}

export function childKey(folder: string, name: string): string {
  return folder === '/' ? `/${name}` : `${folder}/${name}`
}

export function splitKey(key: string): { folder: string; name: string } {
  const end = key.lastIndexOf('/')
  return { folder: key.slice(0, end) || '/', name: key.slice(end + 1) }
}

/** The file at the path; undefined if there is none or it may not be examined. */
export async function lookAt(key: string): Promise<KnownFile | undefined> {
  return lstat(toBytes(key)).then(knownFile, () => undefined)
}

/** As `lookAt` for many paths, a few at a time. */
export async function lookAtAll(keys: readonly string[]): Promise<readonly (KnownFile | undefined)[]> {
  const found: (KnownFile | undefined)[] = []
  for (let start = 0; start < keys.length; start += batchSize) {
    found.push(...(await Promise.all(keys.slice(start, start + batchSize).map(lookAt))))
  }
  return found
}

export async function namesIn(key: string): Promise<readonly string[]> {
  return readdir(toBytes(key), { encoding: 'latin1' }).catch(() => [])
}
