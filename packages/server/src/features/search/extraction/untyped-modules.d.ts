/* What is used of packages that come without types, or with types that need those of browsers. */

declare module 'html-encoding-sniffer' {
  export default function sniff(
    bytes: Uint8Array,
    options: { readonly transportLayerEncodingLabel?: string; readonly defaultEncoding?: string },
  ): string
}

declare module 'turndown' {
  interface Rule {
    readonly filter: string | ((node: import('./dom.ts').PageElement & { readonly nodeName: string }) => boolean)
    readonly replacement: (content: string, node: import('./dom.ts').PageElement) => string
  }
  export default class Turndown {
    constructor(options: Readonly<Record<string, string>>)
    use(plugin: unknown): void
    addRule(name: string, rule: Rule): void
    turndown(html: string): string
  }
}

declare module '@joplin/turndown-plugin-gfm' {
  export const gfm: unknown
}
