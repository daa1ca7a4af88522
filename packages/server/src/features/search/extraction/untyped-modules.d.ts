/* The used parts of packages without types, or with types that need those of browsers. */

declare module 'html-encoding-sniffer' {
  function sniff(
    bytes: Uint8Array,
    options: { readonly transportLayerEncodingLabel?: string; readonly defaultEncoding?: string },
  ): string
  export = sniff
}

declare module 'turndown' {
  interface Rule {
    readonly filter: string | ((node: import('./dom.ts').PageElement & { readonly nodeName: string }) => boolean)
    readonly replacement: (content: string, node: import('./dom.ts').PageElement) => string
  }
  class Turndown {
    constructor(options: Readonly<Record<string, string>>)
    use(plugin: unknown): void
    addRule(name: string, rule: Rule): void
    turndown(html: string): string
  }
  export = Turndown
}

declare module '@joplin/turndown-plugin-gfm' {
  export const gfm: unknown
}
