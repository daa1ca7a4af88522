import type { ReplContent } from '@berth/contract/agent/operations/repl-operations.ts'
import type { Answer, Question } from '../script-process/agent-questions.ts'

const kibibyte = 1024
const mebibyte = 1024 * kibibyte

export const limits = {
  imageBytes: 8 * mebibyte,
  /** Per response. */
  imagesBytes: 16 * mebibyte,
  textBytes: 256 * kibibyte,
  /** Output of timers and events between calls waits for the next response. */
  itemsBetweenCalls: 1000,
  answerBytes: 48 * mebibyte,
  messageBytes: 16 * mebibyte,
} as const

/** Messages from the agent to the process. */
export type ToRepl = { readonly type: 'run'; readonly code: string; readonly timeoutMilliseconds: number } | Answer

/** Messages from the process to the agent. */
export type FromRepl =
  | { readonly type: 'ready' }
  | { readonly type: 'item'; readonly item: ReplContent }
  /** Some items were left out. */
  | { readonly type: 'cut' }
  | { readonly type: 'done'; readonly failure?: { readonly error: string; readonly stack?: string } }
  | Question
