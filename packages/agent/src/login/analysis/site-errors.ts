import type { LoginProblem } from '@berth/contract/agent/login/login-page.ts'
import * as pageWords from '../words/page-words.ts'
import * as problemWords from '../words/problem-words.ts'
import { plainText } from '../words/word-list.ts'
import type { PageReading } from './reading.ts'

export interface SiteError {
  readonly text: string
  readonly problem: LoginProblem
}

const maxError = 300
const maxLine = 240

/** What the error is about. The first match decides: "wrong password, too many of these lock the account". */
export function problemOf(text: string, wasCode: boolean): LoginProblem | undefined {
  const plain = plainText(text)
  const lists = [
    ['account_locked', problemWords.locked],
    ['rate_limited', problemWords.rateLimited],
    [wasCode ? 'code_rejected' : 'session_expired', problemWords.expired],
    [wasCode ? 'code_rejected' : 'credentials_invalid', problemWords.wrongCredentials],
  ] as const
  const found = lists
    .map(([problem, words]) => ({ problem, position: words.positionIn(plain) }))
    .filter(({ position }) => position !== -1)
  // A locked account takes precedence, wherever the text mentions it.
  const isLocked = found.find(({ problem }) => problem === 'account_locked')
  const isThreat = /\b(will be|remaining|left|attempts? (left|remaining)|before)\b/.test(plain)
  if (isLocked && !isThreat) return 'account_locked'
  return found
    .filter(({ problem }) => !isThreat || problem !== 'account_locked')
    .toSorted((one, other) => one.position - other.position)[0]?.problem
}

interface Before {
  /** The text of the page before the last submit; undefined if nothing was submitted. */
  readonly text: string | undefined
  readonly wasCode: boolean
  /** Messages of the page's dialogs. */
  readonly dialogs: readonly string[]
}

/** The site's error: an element marked as one, or new text on the page. */
export function findError(reading: PageReading, { text, wasCode, dialogs }: Before): SiteError | undefined {
  const marked = reading.messages.filter(({ text: said, isButton }) => !isButton && !pageWords.cookies.isIn(said))
  const native = reading.fields.map(({ nativeError }) => nativeError).filter(Boolean)
  const hints = reading.fields.filter(({ isInvalid, hint }) => isInvalid && hint).map(({ hint }) => hint)
  const before = new Set((text ?? '').split('\n').map((line) => line.trim()))
  const added =
    text === undefined
      ? []
      : reading.text
          .split('\n')
          .map((line) => line.trim())
          .filter((line) => line !== '' && line.length <= maxLine && !before.has(line))
  const said = [
    ...dialogs,
    ...marked.filter(({ kind }) => kind !== 'status').map(({ text: message }) => message),
    ...hints,
    ...added,
  ]
  const known = said
    .map((message) => ({ message, problem: problemOf(message, wasCode) }))
    .find(({ problem }) => problem !== undefined)
  if (known?.problem) return { text: known.message.slice(0, maxError), problem: known.problem }
  if (text === undefined) return undefined
  const other = [
    ...native,
    ...dialogs,
    ...marked.filter(({ kind, isError }) => kind === 'alert' || isError).map(({ text: message }) => message),
  ]
  const [first] = other.filter((message) => !before.has(message.trim()))
  return first === undefined ? undefined : { text: first.slice(0, maxError), problem: 'website_error' }
}
