/** Types of the parts of the package that the agent uses; it has none of its own. */
declare module 'x11' {
  // biome-ignore lint/suspicious/noExplicitAny: each request has its own arguments and its own reply.
  type Request = (...args: any[]) => unknown

  export interface XClient {
    on(event: 'event', listener: (event: XEvent) => void): void
    on(event: 'error', listener: (error: Error) => void): void
    on(event: 'end', listener: () => void): void
    once(event: 'end', listener: () => void): void
    require(extension: string, callback: (error: Error | null, extension: Record<string, Request>) => void): void
    terminate(): void
    readonly stream: import('node:net').Socket
    readonly [request: string]: Request
  }

  export interface XEvent {
    readonly name: string
    readonly [field: string]: unknown
  }

  export interface XDisplay {
    readonly client: XClient
    readonly screen: readonly { readonly root: number }[]
    readonly min_keycode: number
    readonly max_keycode: number
  }

  interface ClientOptions {
    readonly display: string
    readonly shm: boolean
    readonly auth: { readonly name: string; readonly data: string }
  }

  export function createClient(
    options: ClientOptions,
    callback: (error: Error | undefined, display: XDisplay) => void,
  ): XClient
}

declare module 'x11/lib/keysyms.js' {
  const keysyms: Readonly<Record<string, { readonly code: number; readonly description: string | null }>>
  // biome-ignore lint/style/noDefaultExport: a module of the older format is its default export.
  export default keysyms
}
