import type { ReplContent } from '@berth/contract/agent/operations/repl-operations.ts'
import type { Answer, Question } from '../script-process/agent-questions.ts'

const kibibyte = 1024
const mebibyte = 1024 * kibibyte

export const limits = {
  imageBytes: 8 * mebibyte,
  /** Of one answer. */
  imagesBytes: 16 * mebibyte,
  textBytes: 256 * kibibyte,
  /** What timers and events write between calls waits for the next answer. */
  itemsBetweenCalls: 1000,
  answerBytes: 48 * mebibyte,
  messageBytes: 16 * mebibyte,
} as const

/** What the agent tells the process. */
export type ToRepl = { readonly type: 'run'; readonly code: string; readonly timeoutMilliseconds: number } | Answer

/** What the process tells the agent. */
export type FromRepl =
  | { readonly type: 'ready' }
  | { readonly type: 'item'; readonly item: ReplContent }
  /** Something was left out of the items. */
  | { readonly type: 'cut' }
  | { readonly type: 'done'; readonly failure?: { readonly error: string; readonly stack?: string } }
  | Question
