import { createHash } from 'node:crypto'
import {
  form,
  page,
  password,
  plain,
  type Reply,
  redirect,
  type Site,
  user,
  type Visit,
  welcome,
  wrongPassword,
} from './site.ts'

const login = page(`<h1>Sign in</h1><!--error-->${form()}`)
const realm = 'Staff only'
const nonce = '5ccc069c403ebaf9f0171e9517f40e41'
const reports = page('<h1>Reports</h1><ul><li>Today</li></ul>')

const challenged = (challenge: string): Reply => ({
  status: 401,
  headers: { 'www-authenticate': challenge },
  html: page('<h1>Unauthorized</h1>'),
})
const unauthorized = challenged(`Basic realm="${realm}"`)

/** A page that requires HTTP basic authentication. */
const closed =
  () =>
  ({ basic }: Visit): Reply | string =>
    basic === `${user}:${password}` ? reports : unauthorized

/** A page that requires digest authentication, which never sends the password itself. */
const closedByDigest =
  (algorithm: 'MD5' | 'SHA-256') =>
  (visit: Visit): Reply | string =>
    isRightDigest(visit, algorithm)
      ? reports
      : challenged(`Digest realm="${realm}", nonce="${nonce}", qop="auth", algorithm=${algorithm}`)

/** Checks a response according to RFC 7616. */
function isRightDigest({ authorization = '', method }: Visit, algorithm: 'MD5' | 'SHA-256'): boolean {
  if (!authorization.startsWith('Digest ')) return false
  const pairs = authorization.matchAll(/(\w+)=(?:"([^"]*)"|([^\s,]+))/g)
  const given = Object.fromEntries([...pairs].map(([, name = '', quoted, bare]) => [name, quoted ?? bare ?? '']))
  const hash = (...parts: readonly (string | undefined)[]) =>
    createHash(algorithm === 'MD5' ? 'md5' : 'sha256')
      .update(parts.join(':'))
      .digest('hex')
  const { nc, cnonce, qop, uri } = given
  const response = hash(hash(user, realm, password), nonce, nc, cnonce, qop, hash(method, uri))
  return given.username === user && given.nonce === nonce && given.response === response
}

/** Sites that respond with 401 to the browser itself. */
export const httpSites: readonly Site[] = [
  { name: 'http-basic', pages: { '/': closed() }, ends: 'logged_in' },
  {
    name: 'http-basic-wrong',
    pages: { '/': closed() },
    passwords: [wrongPassword, password],
    toldBefore: 'credentials_invalid',
    ends: 'logged_in',
  },
  {
    name: 'http-basic-outside',
    pages: { '/': () => redirect('http://closed.test/'), 'closed.test/': closed() },
    ends: 'error',
    problem: 'domain_not_allowed',
  },
  {
    name: 'http-basic-before',
    pages: {
      ...plain(login),
      '/': (visit) => (visit.basic === 'gate:open' ? page('<a href="/login">Log in</a>') : unauthorized),
      '/login': (visit) => {
        if (visit.basic !== 'gate:open') return unauthorized
        if (visit.method === 'GET') return login
        return visit.sent.get('password') === password ? welcome() : login
      },
    },
    gate: { username: 'gate', password: 'open' },
    ends: 'logged_in',
  },
  { name: 'http-digest', pages: { '/': closedByDigest('MD5') }, ends: 'logged_in' },
  {
    name: 'http-digest-wrong',
    pages: { '/': closedByDigest('SHA-256') },
    passwords: [wrongPassword, password],
    toldBefore: 'credentials_invalid',
    ends: 'logged_in',
  },
]
