import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunOutcome, Visit } from '../analysis.ts'
import { judgeRuns, type Verdict, verdictOf } from './judge-runs.ts'

const article = 'The harbour opened in the spring and ships came from every coast of the old sea. '.repeat(30)
const page: Visit = {
  status: 200,
  failure: null,
  isPage: true,
  title: 'Harbour',
  text: article,
  challenges: [],
  hasPasswordField: false,
  media: 0,
}
const challenge: Partial<Visit> = { status: 403, title: 'Just a moment...', text: '' }
const login: Partial<Visit> = { title: 'Log in', text: 'Sign in to go on', hasPasswordField: true }

const verdicts: readonly (readonly [what: string, visit: Partial<Visit>, verdict: Verdict])[] = [
  ['a page with text', {}, 'reached'],
  ['a page of pictures alone', { text: '', media: 3 }, 'reached'],
  ['a file that is no page', { isPage: false, text: '' }, 'reached'],
  ['a page without anything', { title: '', text: ' \n' }, 'empty'],
  ['403', { status: 403 }, 'refused'],
  ['451', { status: 451 }, 'refused'],
  ['401', { status: 401 }, 'login wall'],
  ['402', { status: 402 }, 'payment wall'],
  ['404', { status: 404 }, 'missing'],
  ['410', { status: 410 }, 'missing'],
  ['429', { status: 429 }, 'failing'],
  ['500', { status: 500 }, 'failing'],
  ['503 with a challenge', { status: 503, text: 'Checking your browser before you go on' }, 'challenge'],
  ['a challenge by its header', { challenges: ['header cf-mitigated'] }, 'challenge'],
  ['a challenge by its frame', { text: 'One more step', challenges: ['hcaptcha'] }, 'challenge'],
  ['a captcha within a long page', { challenges: ['recaptcha'] }, 'reached'],
  ['an article about captchas', { text: `${article} Are you a robot? ${article}` }, 'reached'],
  ['a refusal with status 200', { text: 'Access denied. You do not have permission.' }, 'refused'],
  ['a browser that is refused', { text: 'Your browser is not supported.' }, 'refused'],
  ['a country that is refused', { text: 'This video is not available in your country' }, 'refused'],
  ['a form to log in', login, 'login wall'],
  ['a long page with a form to log in', { ...login, text: `Sign in ${article}` }, 'reached'],
  ['a request to subscribe', { text: 'Subscribe to continue reading' }, 'payment wall'],
  ['no such name', { status: null, failure: 'ERR_NAME_NOT_RESOLVED' }, 'unreachable'],
  ['a certificate that is none', { status: null, failure: 'ERR_CERT_AUTHORITY_INVALID' }, 'unreachable'],
  ['an address that sessions may not reach', { status: null, failure: 'ERR_ADDRESS_UNREACHABLE' }, 'unreachable'],
  ['a reset', { status: null, failure: 'ERR_CONNECTION_RESET' }, 'failing'],
  ['no answer in time', { status: null, failure: 'TIMEOUT' }, 'failing'],
]
for (const [what, visit, verdict] of verdicts) {
  test(`${what} by itself is: ${verdict}`, () => {
    assert.equal(verdictOf({ ...page, ...visit }), verdict)
  })
}

const comparisons: readonly (readonly [
  what: string,
  one: Partial<Visit>,
  other: Partial<Visit>,
  outcomes: readonly [RunOutcome, RunOutcome],
])[] = [
  ['both reach it', {}, {}, ['accessed', 'accessed']],
  ['one is challenged', challenge, {}, ['blocked', 'accessed']],
  ['both are challenged', challenge, challenge, ['blocked', 'blocked']],
  ['both meet a login', login, login, ['accessed', 'accessed']],
  ['one meets a login', login, {}, ['blocked', 'accessed']],
  ['one meets a payment', { status: 402 }, {}, ['blocked', 'accessed']],
  ['both meet a payment', { status: 402 }, { status: 402 }, ['accessed', 'accessed']],
  ['one gets an empty page', { text: '' }, {}, ['blocked', 'accessed']],
  ['both get an empty page', { text: '' }, { text: '' }, ['inconclusive', 'inconclusive']],
  ['one is told that there is no such page', { status: 404 }, {}, ['blocked', 'accessed']],
  ['one gets other words, and few', { text: 'Please use our app instead' }, {}, ['blocked', 'accessed']],
  ['one gets the beginning of the same', { text: article.slice(0, 200) }, {}, ['accessed', 'accessed']],
  ['short pages differ', { text: 'It is 12:01 now' }, { text: 'Good morning to you' }, ['accessed', 'accessed']],
  ['one fails', { status: 500 }, {}, ['inconclusive', 'accessed']],
]
for (const [what, one, other, outcomes] of comparisons) {
  test(`when ${what}, the runs are ${outcomes.join(' and ')}`, () => {
    const runs = [one, other].map((visit, index) => ({
      configuration: { headless: index === 0, stealth: index === 1 },
      visit: { ...page, ...visit },
    }))

    assert.deepEqual(
      judgeRuns(runs).map(({ outcome }) => outcome),
      outcomes,
    )
  })
}
