import type { Run, RunOutcome, Visit } from '../analysis.ts'

/** The verdict on a single visit. */
export type Verdict =
  | 'reached'
  | 'login wall'
  | 'payment wall'
  | 'challenge'
  | 'refused'
  | 'empty'
  /** The page does not exist. */
  | 'missing'
  /**
   * Browser settings make no difference: an unknown name, an address that sessions may not reach, an invalid
   * certificate.
   */
  | 'unreachable'
  /** A later visit may succeed. */
  | 'failing'

const unreachableErrors =
  /^ERR_(NAME_NOT_RESOLVED|ADDRESS_(UNREACHABLE|INVALID)|CONNECTION_REFUSED|NETWORK_ACCESS_DENIED|UNSAFE_PORT|CERT_|SSL_(?!PROTOCOL)|UNKNOWN_URL_SCHEME|BLOCKED_BY_|TOO_MANY_REDIRECTS)/

/** Pages with a challenge or a denial contain little other text. */
const shortText = 1_500
const challengeWords =
  /\b(verify(ing)? (that )?you are (a )?human|are you (a )?(human|robot)|(not|n't) a robot|just a moment|checking your browser|unusual traffic|attention required|pardon our interruption|enable javascript and cookies to continue|complete the captcha|solve the captcha|(bot|automated) (traffic|access|browser|detected)|automation detected|security check)\b/i
const refusalWords =
  /\b(access( to this (page|site|resource))? (is |has been )?(denied|blocked)|you have been blocked|request (was )?(blocked|unsuccessful)|not available in your (country|region)|unsupported browser|your browser is not supported)\b/i
const loginWords =
  /\b(log ?in|sign ?in|anmelden|iniciar sesión|se connecter|password|passwort|contraseña|mot de passe)\b/i
const paymentWords =
  /\b(subscribe (now )?to (continue|read)|subscription (is )?required|for subscribers only|payment required|start your (free )?trial to (continue|read)|purchase (a )?(subscription|access))\b/i

export function verdictOf(visit: Visit): Verdict {
  const { failure, status } = visit
  if (failure !== null) return unreachableErrors.test(failure) ? 'unreachable' : 'failing'
  if (isChallenge(visit)) return 'challenge'
  if (status === 401) return 'login wall'
  if (status === 402) return 'payment wall'
  if (status === 404 || status === 410) return 'missing'
  if (status === null || status === 408 || status === 425 || status === 429 || status >= 500) return 'failing'
  if (status >= 400) return 'refused'
  return verdictOfPage(visit)
}

function verdictOfPage({ isPage, title, text, hasPasswordField, media }: Visit): Verdict {
  if (!isPage) return 'reached'
  const isShort = text.length < shortText
  const words = `${title}\n${text}`
  if (isShort && refusalWords.test(words)) return 'refused'
  if (isShort && paymentWords.test(words)) return 'payment wall'
  if (isShort && hasPasswordField && loginWords.test(words)) return 'login wall'
  return text.trim() === '' && media === 0 ? 'empty' : 'reached'
}

/** A captcha widget in a form of an ordinary page is no challenge: such a page has other text. */
function isChallenge({ challenges, title, text }: Visit): boolean {
  if (challenges.some((name) => name.startsWith('header '))) return true
  return text.length < shortText && (challenges.length > 0 || challengeWords.test(`${title}\n${text}`))
}

export interface JudgedRun extends Run {
  readonly verdict: Verdict
  readonly outcome: RunOutcome
}

/**
 * Compares runs with each other. A denial or an empty page in every browser belongs to the site; in only some browsers,
 * it is aimed at these. Likewise, a page with a fraction of the text that other browsers get counts as denied.
 */
export function judgeRuns(runs: readonly Run[]): readonly JudgedRun[] {
  const single = runs.map((run) => ({ ...run, verdict: verdictOf(run.visit) }))
  const reached = single.filter(({ verdict }) => verdict === 'reached')
  const fullest = reached.reduce((most, { visit }) => (visit.text.length > most.length ? visit.text : most), '')
  return single.map((run) => ({ ...run, outcome: outcomeOf(run, reached.length > 0, fullest) }))
}

function outcomeOf({ verdict, visit }: Run & { verdict: Verdict }, isReachable: boolean, fullest: string): RunOutcome {
  switch (verdict) {
    case 'reached':
      return isOtherPage(visit.text, fullest) ? 'blocked' : 'accessed'
    case 'login wall':
    case 'payment wall':
      return isReachable ? 'blocked' : 'accessed'
    case 'empty':
    case 'missing':
      return isReachable ? 'blocked' : 'inconclusive'
    case 'challenge':
    case 'refused':
      return 'blocked'
    case 'unreachable':
    case 'failing':
      return 'inconclusive'
  }
}

const comparedLength = 400
const shareOfText = 0.25
const shareOfWords = 0.5

/** Whether the text is much shorter than the other and consists mostly of other words. Pages differ between visits. */
function isOtherPage(text: string, fullest: string): boolean {
  if (fullest.length < comparedLength || text.length > fullest.length * shareOfText) return false
  const known = new Set(wordsOf(fullest))
  const words = wordsOf(text)
  const common = words.filter((word) => known.has(word)).length
  return common < words.length * shareOfWords || words.length === 0
}

function wordsOf(text: string): readonly string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]{2,}/gu) ?? []
}
