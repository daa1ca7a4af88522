import type { Answer, Question } from '../script-process/agent-questions.ts'

/** Largest message of an executor: a result of the limit below as JSON, with what belongs to it. */
export const maxMessageBytes = 24 * 1024 * 1024
export const maxResultBytes = 16 * 1024 * 1024
/** Of each stream, for one call. */
export const maxOutputCharacters = 1024 * 1024

/** Where Chromium's DevTools server listens. */
export interface BrowserAddress {
  readonly port: number
  readonly browserPath: string
}

/** Which tab a call works in: the one that is shown, or one of the executor's own; absent when it has none yet. */
export type TabChoice = { readonly kind: 'shown' } | { readonly kind: 'own'; readonly targetId?: string }

/** What the agent tells an executor. */
export type ToExecutor =
  | {
      readonly type: 'run'
      readonly code: string
      readonly browser: BrowserAddress
      readonly tab: TabChoice
      /** How long the tab that the call is for may take to answer. */
      readonly patienceMilliseconds: number
    }
  | Answer

/** What an executor tells the agent of the call that it runs. */
export type FromExecutor =
  | { readonly type: 'tab'; readonly targetId: string; readonly created: boolean }
  | { readonly type: 'output'; readonly channel: 'stdout' | 'stderr'; readonly text: string }
  | Question
  /** There is no browser at the address; the code has not begun. */
  | { readonly type: 'unreached'; readonly reason: string }
  /** `isSpoiled`: nobody knows what state the process is in, and no other call should meet it. */
  | { readonly type: 'done'; readonly outcome: RunOutcome; readonly isSpoiled: boolean }
  /** After `done`: the connection of the call is closed. `isClean`: nothing of its code goes on. */
  | { readonly type: 'settled'; readonly isClean: boolean }

export type RunOutcome =
  | { readonly success: true; readonly result?: unknown }
  | { readonly success: false; readonly error: string; readonly stack?: string }
