import { createHash, hkdfSync, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readKeptFile } from '../host/kept-file.ts'

const masterKeyBytes = 32

/** A new API key: 43 characters of randomness behind the prefix that the field uses. */
export function newApiKey(): string {
  return `sk_${randomBytes(masterKeyBytes).toString('base64url').replaceAll(/[-_]/g, 'x')}`
}

const longKey = 40

/** What may be shown of a key, so that its owner knows it again. Of a short one that is little. */
export function maskApiKey(key: string): string {
  return key.length >= longKey ? `${key.slice(0, 7)}...${key.slice(-4)}` : `${key.slice(0, 3)}...`
}

/** Keys are random and long, so that a plain hash cannot be searched. */
export function hashApiKey(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

/** The operator's master key, or the one in the data folder, which the first start makes (mode 0600). */
export async function readMasterKey(dataFolder: string, configured: string | undefined): Promise<string> {
  if (configured !== undefined) return configured
  return readKeptFile(join(dataFolder, 'master-key'), () => randomBytes(masterKeyBytes).toString('hex'))
}

/** A key for one purpose alone, so that no two uses of the master key can be played against each other. */
export function deriveKey(masterKey: string, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', masterKey, 'berth', purpose, masterKeyBytes))
}
