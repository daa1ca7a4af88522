import type { Answer, Question } from '../script-process/agent-questions.ts'

/** Largest message of an executor: a result of the maximum size below as JSON, and its envelope. */
export const maxMessageBytes = 24 * 1024 * 1024
export const maxResultBytes = 16 * 1024 * 1024
/** Per stream and call. */
export const maxOutputCharacters = 1024 * 1024

/** The address of Chromium's DevTools server. */
export interface BrowserAddress {
  readonly port: number
  readonly browserPath: string
}

/** The tab of a call: the visible one, or the executor's own, whose id is absent until it exists. */
export type TabChoice = { readonly kind: 'shown' } | { readonly kind: 'own'; readonly targetId?: string }

/** Messages from the agent to an executor. */
export type ToExecutor =
  | {
      readonly type: 'run'
      readonly code: string
      readonly browser: BrowserAddress
      readonly tab: TabChoice
      /** How long the tab of the call may take to answer. */
      readonly tabLimitMilliseconds: number
    }
  | Answer

/** Messages from an executor to the agent about the running call. */
export type FromExecutor =
  | { readonly type: 'tab'; readonly targetId: string; readonly created: boolean }
  | { readonly type: 'output'; readonly channel: 'stdout' | 'stderr'; readonly text: string }
  | Question
  /** There is no browser at the address; the code has not started. */
  | { readonly type: 'unreached'; readonly reason: string }
  /** `isSpoiled`: the state of the process is unknown, and it must not run another call. */
  | { readonly type: 'done'; readonly outcome: RunOutcome; readonly isSpoiled: boolean }
  /** After `done`: the connection of the call is closed. `isClean`: nothing started by its code is still running. */
  | { readonly type: 'settled'; readonly isClean: boolean }

export type RunOutcome =
  | { readonly success: true; readonly result?: unknown }
  | { readonly success: false; readonly error: string; readonly stack?: string }
