import { lstat, readdir } from 'node:fs/promises'
import { type KnownFile, knownFile } from './changes.ts'

/*
 * Paths as their bytes, kept as latin1 text: a file's name need not be UTF-8, and has to be found again all the same.
 */

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

/** What is there, if anything; what may not be looked at is as good as nothing. */
export async function lookAt(key: string): Promise<KnownFile | undefined> {
  return lstat(toBytes(key)).then(knownFile, () => undefined)
}

/** The same for many, some at a time. */
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
