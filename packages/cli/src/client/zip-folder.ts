import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { ZipFile } from 'yazl'

/** Writes files into a ZIP archive. */
export async function zipFolder(
  files: readonly { readonly path: string; readonly name: string }[],
  archive: string,
): Promise<void> {
  const zip = new ZipFile()
  for (const { path, name } of files) zip.addFile(path, name)
  zip.end()
  await pipeline(zip.outputStream, createWriteStream(archive))
}
