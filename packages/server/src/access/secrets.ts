import { createHash, hkdfSync, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { readOrCreateFile } from '../host/read-or-create-file.ts'

const masterKeyBytes = 32

/** Creates an API key: the prefix that is usual for such keys and 43 random characters. */
export function newApiKey(): string {
  return `sk_${randomBytes(masterKeyBytes).toString('base64url').replaceAll(/[-_]/g, 'x')}`
}

const longKey = 40

/** The part of a key that may be shown, so that its owner recognizes it. Short keys show little. */
export function maskApiKey(key: string): string {
  return key.length >= longKey ? `${key.slice(0, 7)}...${key.slice(-4)}` : `${key.slice(0, 3)}...`
}

/** A plain hash is sufficient, because keys are random and long. */
export function hashApiKey(key: string): Buffer {
  return createHash('sha256').update(key).digest()
}

/** Returns the operator's master key, or the one in the data folder, which the first start creates (mode 0600). */
export async function readMasterKey(dataFolder: string, configured: string | undefined): Promise<string> {
  if (configured !== undefined) return configured
  return readOrCreateFile(join(dataFolder, 'master-key'), () => randomBytes(masterKeyBytes).toString('hex'))
}

/** Derives a key for one purpose, so that different uses of the master key are independent. */
export function deriveKey(masterKey: string, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', masterKey, 'berth', purpose, masterKeyBytes))
}
