/*
 * What the server and the process of an app say to each other: lines of JSON, to the process on its input, and from it
 * on its output, between what the app itself writes there. A secret that the process is given first tells them apart.
 * An end of line comes before it, since the app may have begun a line.
 */

/** The first line. */
export interface Introduction {
  readonly secret: string
}

/** Each later line. The process runs one invocation at a time. */
export interface RunAction {
  readonly invocation_id: string
  readonly app: string
  readonly action: string
  /** JSON text; absent for none. */
  readonly payload?: string
}

/** What the process answers, behind the end of a line, its secret and a space. */
export type FromApp =
  | {
      readonly type: 'loaded'
      readonly apps: readonly { readonly name: string; readonly actions: readonly string[] }[]
    }
  | { readonly type: 'load-failed'; readonly reason: string }
  /** The result is in the file, as JSON text. */
  | { readonly type: 'done'; readonly path: string }
  | { readonly type: 'failed'; readonly reason: string }
