import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Files, zipOf } from './browsers/extension-files.ts'

const sdkFolder = join(import.meta.dirname, '../../node_modules/@onkernel/sdk')

/**
 * The archive of an app that includes the official framework, so that nothing needs to be installed, or in another
 * folder.
 */
export async function sdkApp(files: Files, folder = 'node_modules/@onkernel/sdk'): Promise<Uint8Array> {
  const names = await Array.fromAsync(glob('**/*.{js,mjs,json}', { cwd: sdkFolder }))
  const sdk = names.map(async (name) => [`${folder}/${name}`, await readFile(join(sdkFolder, name))] as const)
  return zipOf({ ...files, ...Object.fromEntries(await Promise.all(sdk)) })
}
