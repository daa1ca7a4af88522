const tsx = new URL('../apps/node_modules/tsx/dist/', import.meta.url)

export function isTypeScript(entrypoint: string): boolean {
  return /\.[cm]?ts$/.test(entrypoint)
}

/** Loads the slow parts of the loader without reading files of an app. */
export async function prepareTypeScript(): Promise<void> {
  await Promise.all([import(new URL('esm/api/index.mjs', tsx).href), import(new URL('cjs/api/index.mjs', tsx).href)])
}

/** From now on this process loads TypeScript according to the app's `tsconfig.json`. */
export async function loadTypeScript(): Promise<void> {
  await import(new URL('loader.mjs', tsx).href)
}
