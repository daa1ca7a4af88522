const tsx = new URL('../apps/node_modules/tsx/dist/', import.meta.url)

export function isTypeScript(entrypoint: string): boolean {
  return /\.[cm]?ts$/.test(entrypoint)
}

/** Loads what takes time of the loader, and nothing that looks at the files of an app. */
export async function prepareTypeScript(): Promise<void> {
  await Promise.all([import(new URL('esm/api/index.mjs', tsx).href), import(new URL('cjs/api/index.mjs', tsx).href)])
}

/** From now on this process loads TypeScript, as the `tsconfig.json` of the app says. */
export async function loadTypeScript(): Promise<void> {
  await import(new URL('loader.mjs', tsx).href)
}
