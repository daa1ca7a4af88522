import { open } from 'node:fs/promises'
import { BadArchive } from './archive-entry.ts'

const magic = 'Cr24'
const fixedHeaderBytes = 12
const maxHeaderBytes = 1024 * 1024

/**
 * The offset of the zip archive in a packed extension, after the magic number, the version and a signed header with its
 * length. Chromium verifies the signature when it installs the extension.
 */
export function zipOffsetOfCrx(head: Uint8Array): number {
  const view = Buffer.from(head.buffer, head.byteOffset, head.byteLength)
  if (view.length < fixedHeaderBytes || view.toString('latin1', 0, 4) !== magic) {
    throw new BadArchive('it is not a packed extension (CRX)')
  }
  if (view.readUInt32LE(4) !== 3) throw new BadArchive('its format is outdated: CRX3 is required')
  const headerBytes = view.readUInt32LE(8)
  if (headerBytes > maxHeaderBytes) throw new BadArchive('the header of the packed extension is too long')
  return fixedHeaderBytes + headerBytes
}

/** The same for a file. */
export async function readZipOffset(path: string): Promise<number> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(fixedHeaderBytes), 0, fixedHeaderBytes, 0)
    return zipOffsetOfCrx(buffer.subarray(0, bytesRead))
  } finally {
    await file.close()
  }
}
