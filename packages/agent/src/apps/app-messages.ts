/*
 * Messages between the server and the process of an app: lines of JSON on its standard input and output. The app writes
 * to the same output, so the process marks its messages with a secret that it receives first. Each message starts with
 * a line break, because the app may have begun a line.
 */

export interface Introduction {
  readonly secret: string
}

/** All later lines. The process runs one invocation at a time. */
export interface RunAction {
  readonly invocation_id: string
  readonly app: string
  readonly action: string
  /** JSON text; absent if there is none. */
  readonly payload?: string
}

/** Message of the process; its line starts with the secret and a space. */
export type FromApp =
  | {
      readonly type: 'loaded'
      readonly apps: readonly { readonly name: string; readonly actions: readonly string[] }[]
    }
  | { readonly type: 'load-failed'; readonly reason: string }
  /** The file contains the result as JSON text. */
  | { readonly type: 'done'; readonly path: string }
  | { readonly type: 'failed'; readonly reason: string }
