import { ExtensionName } from '@berth/contract/extensions/extension.ts'
import { downloadFromChromeStore, uploadExtension } from '@berth/contract/extensions/extension-endpoints.ts'
import { z } from 'zod'
import { call, callFile } from '../../api/client.ts'

export const StoreExtension = z.object({
  url: z
    .string({ error: 'must be given' })
    .meta({ description: "The extension's page in the Chrome Web Store, https://chromewebstore.google.com/detail/…" }),
  name: ExtensionName.optional(),
})

/** Downloads the extension from the store and uploads it to berth. */
export async function addFromStore({ url, name }: z.output<typeof StoreExtension>): Promise<unknown> {
  const archive = await callFile(downloadFromChromeStore, { query: { url } })
  const form = new FormData()
  form.append('file', archive, 'extension.zip')
  if (name !== undefined) form.append('name', name)
  return call(uploadExtension, { body: form })
}
