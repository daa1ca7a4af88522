import type { Answer, Question } from '../script-process/agent-questions.ts'

export const maxMessageBytes = 40 * 1024 * 1024

/** A page that matches the tool. */
export interface MatchingPage {
  readonly targetId: string
  readonly url: string
  readonly title: string
}

/** Messages from the agent to the process of custom tools; one task at a time. */
export type ToToolProcess =
  | { readonly type: 'define'; readonly source: string }
  | {
      readonly type: 'execute'
      readonly source: string
      readonly index: number
      readonly input: unknown
      /** The first is the one that the caller has chosen. */
      readonly matches: readonly MatchingPage[]
      readonly timeoutMilliseconds: number
    }
  | Answer

export type FromToolProcess =
  | { readonly type: 'done'; readonly result?: unknown }
  | { readonly type: 'failed'; readonly error: string }
  | Question
