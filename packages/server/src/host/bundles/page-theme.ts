import { createHash } from 'node:crypto'

/** Applied before the first paint. The policy of a page that uses it contains its hash. */
export const themeScript =
  "document.documentElement.dataset.theme=localStorage.getItem('berth.theme')??(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light')"
export const themeHash = createHash('sha256').update(themeScript).digest('base64')
