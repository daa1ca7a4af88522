import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LoginChoice, LoginField, LoginPage } from '@berth/contract/agent/login/login-page.ts'
import fc from 'fast-check'
import type { StoredLogin } from '../stored-login/stored-login.ts'
import { type Decision, decide, type FlowView, typedKey } from './decide.ts'

const field = (name: string, purpose: LoginField['purpose'], more: Partial<LoginField> = {}): LoginField => ({
  ref: name,
  name,
  label: name,
  purpose,
  input_mode: 'text',
  required: true,
  is_rejected: false,
  selector: `#${name}`,
  ...more,
})
const choice = (kind: LoginChoice['kind'], label: string, more: Partial<LoginChoice> = {}): LoginChoice => ({
  ref: label,
  kind,
  label,
  selector: '//button',
  ...more,
})
const page = (state: LoginPage['state'], more: Partial<LoginPage> = {}): LoginPage => ({
  page_key: 'k',
  url: 'https://site.test/login',
  title: '',
  state,
  fields: [],
  choices: [],
  ...more,
})
const user = field('email', 'email')
const secret = field('password', 'password')
const code = { code: '123456', expiresAt: new Date(1) }
const storedLogin = (values: Record<string, string>, more: Partial<StoredLogin> = {}): StoredLogin => ({
  version: 'v',
  values: new Map(Object.entries(values)),
  ssoProvider: null,
  totp: undefined,
  ...more,
})
const both = storedLogin({ username: 'ann@site.test', password: 'p' })
const view = (more: Partial<FlowView> = {}): FlowView => ({
  isAttended: true,
  storedLogin: undefined,
  typed: [],
  hasActed: false,
  looks: 0,
  ...more,
})

const short = (decision: Decision): string => {
  switch (decision.do) {
    case 'type':
      return `type ${decision.values.map(({ field: { name }, source }) => `${name}:${source}`).join(' ')}`
    case 'choose':
      return `choose ${decision.choice.label}`
    case 'ask':
      return `ask, known: ${decision.known.map(({ name }) => name).join(' ')}`
    case 'fail':
      return `fail ${decision.failure.code}`
    default:
      return decision.do
  }
}

const form = page('form', { fields: [user, secret] })
const refused = page('form', { fields: [user, secret], problem: 'credentials_invalid' })
const totp = { totp: () => code }

const cases: readonly (readonly [what: string, LoginPage, FlowView, string])[] = [
  ['nothing stored', form, view(), 'ask, known: '],
  ['all stored', form, view({ storedLogin: both }), 'type email:stored password:stored'],
  ['only the name stored', form, view({ storedLogin: storedLogin({ email: 'a@b.test' }) }), 'ask, known: email'],
  [
    'a name that is no address',
    form,
    view({ storedLogin: storedLogin({ username: 'ann', password: 'p' }) }),
    'ask, known: password',
  ],
  ['typed before', form, view({ storedLogin: both, typed: [typedKey(form, secret)] }), 'ask, known: email'],
  ['refused, with a person', refused, view({ storedLogin: both }), 'ask, known: '],
  ['refused, without', refused, view({ storedLogin: both, isAttended: false }), 'fail credentials_invalid'],
  [
    'an optional field',
    page('form', { fields: [user, secret, field('tenant', 'other', { required: false })] }),
    view({ storedLogin: both }),
    'type email:stored password:stored',
  ],
  [
    'a secret under its own name is never typed',
    page('form', { fields: [field('totp_secret', 'other')] }),
    view({ storedLogin: storedLogin({ totp_secret: 'x' }) }),
    'ask, known: ',
  ],
  [
    'a code by a stored secret',
    page('form', { fields: [field('code', 'totp')] }),
    view({ storedLogin: storedLogin({}, totp) }),
    'type code:totp',
  ],
  [
    'a code of some kind',
    page('form', { fields: [field('code', 'code')] }),
    view({ storedLogin: storedLogin({}, totp) }),
    'type code:totp',
  ],
  [
    'a code by SMS',
    page('form', { fields: [field('code', 'sms_code')] }),
    view({ storedLogin: storedLogin({}, totp), isAttended: false }),
    'fail sms_code_required',
  ],
  [
    'a code that lapsed',
    page('form', { fields: [field('code', 'totp')], problem: 'code_rejected' }),
    view({ storedLogin: storedLogin({}, totp), typed: ['totp'] }),
    'type code:totp',
  ],
  [
    'a code that was refused twice',
    page('form', { fields: [field('code', 'totp')], problem: 'code_rejected' }),
    view({ storedLogin: storedLogin({}, totp), typed: ['totp', 'totp'], isAttended: false }),
    'fail totp_code_rejected',
  ],
  [
    'the service of the credential',
    page('form', { fields: [user, secret], choices: [choice('sso', 'Acme', { provider: 'acme' })] }),
    view({ storedLogin: storedLogin({ password: 'p' }, { ssoProvider: 'Acme' }) }),
    'choose Acme',
  ],
  [
    'the authenticator among others',
    page('choice', {
      choices: [choice('mfa', 'SMS', { mfa_type: 'sms' }), choice('mfa', 'App', { mfa_type: 'totp' })],
    }),
    view({ storedLogin: storedLogin({}, totp) }),
    'choose App',
  ],
  [
    'the authenticator instead of a push',
    page('external_action', { choices: [choice('mfa', 'App', { mfa_type: 'totp' })] }),
    view({ storedLogin: storedLogin({}, totp) }),
    'choose App',
  ],
  ['a push', page('external_action'), view(), 'wait'],
  [
    'the account that is meant',
    page('choice', { choices: [choice('account', 'Bob <bob@site.test>'), choice('account', 'Ann <ann@site.test>')] }),
    view({ storedLogin: both }),
    'choose Ann <ann@site.test>',
  ],
  [
    'an unknown account',
    page('choice', { choices: [choice('account', 'Bob')] }),
    view({ storedLogin: both, isAttended: false }),
    'fail account_choice_required',
  ],
  [
    'a password instead of a link',
    page('choice', { choices: [choice('method', 'Use password', { mfa_type: 'password' })] }),
    view({ storedLogin: both }),
    'choose Use password',
  ],
  [
    'a password instead of a code by SMS',
    page('form', {
      fields: [field('phone', 'phone'), field('code', 'sms_code')],
      choices: [choice('method', 'By password', { mfa_type: 'password' })],
    }),
    view({ storedLogin: both }),
    'choose By password',
  ],
  ['logged in', page('logged_in'), view(), 'succeed'],
  ['a challenge, with a person', page('captcha', { fields: [user] }), view({ storedLogin: both }), 'wait'],
  ['a page that loads', page('loading'), view(), 'look'],
  ['a page that never loads', page('loading'), view({ looks: 4 }), 'fail navigation_confused'],
  ['no login', page('not_found'), view(), 'fail login_form_not_found'],
  ['a page between two', page('not_found'), view({ hasActed: true }), 'look'],
  ['an error at first', page('error', { problem: 'website_error' }), view(), 'reopen'],
  ['an error again', page('error', { problem: 'website_error' }), view({ looks: 1 }), 'fail website_error'],
  [
    'an error after a password',
    page('error', { problem: 'website_error' }),
    view({ hasActed: true }),
    'fail website_error',
  ],
]

for (const [what, shown, known, expected] of cases) {
  test(`of ${what}: ${expected}`, () => {
    assert.equal(short(decide(shown, known)), expected)
  })
}

test('for any page, a stored password is typed once for each host, and a login without a person asks nobody', () => {
  const purposes: readonly LoginField['purpose'][] = [
    'username',
    'email',
    'password',
    'totp',
    'sms_code',
    'code',
    'other',
  ]
  const anyField = fc
    .record({
      name: fc.constantFrom('a', 'b', 'c'),
      purpose: fc.constantFrom(...purposes),
      required: fc.boolean(),
      is_rejected: fc.boolean(),
    })
    .map(({ name, purpose, ...more }) => field(`${name} ${purpose}`, purpose, more))
  const anyChoice = fc
    .record({
      kind: fc.constantFrom('sso', 'mfa', 'method', 'account', 'terms', 'other'),
      mfa_type: fc.constantFrom('sms', 'totp', 'push', 'password', 'switch'),
    })
    .map(({ kind, mfa_type }) =>
      choice(kind as LoginChoice['kind'], `${kind} ${mfa_type}`, {
        mfa_type: mfa_type as NonNullable<LoginChoice['mfa_type']>,
        provider: 'acme',
      }),
    )
  const anyPage = fc.record({
    state: fc.constantFrom(
      'form',
      'choice',
      'external_action',
      'captcha',
      'blocked',
      'error',
      'loading',
      'not_found',
      'logged_in',
    ),
    fields: fc.uniqueArray(anyField, { maxLength: 4, selector: ({ name }) => name }),
    choices: fc.array(anyChoice, { maxLength: 3 }),
    problem: fc.option(fc.constantFrom('credentials_invalid', 'code_rejected', 'website_error', 'domain_not_allowed'), {
      nil: undefined,
    }),
    host: fc.constantFrom('one.test', 'two.test'),
  })

  fc.assert(
    fc.property(fc.array(anyPage, { maxLength: 12 }), fc.boolean(), fc.boolean(), (pages, isAttended, hasTotp) => {
      const stored = storedLogin(
        { username: 'ann@site.test', password: 'p' },
        { ssoProvider: 'acme', ...(hasTotp && totp) },
      )
      let typed: string[] = []
      const passwords = new Map<string, number>()
      for (const { state, fields, choices, problem, host } of pages) {
        const shown = page(state as LoginPage['state'], {
          fields,
          choices,
          ...(problem && { problem: problem as NonNullable<LoginPage['problem']> }),
          url: `https://${host}/`,
        })
        const decision = decide(shown, view({ isAttended, storedLogin: stored, typed, hasActed: typed.length > 0 }))
        if (!isAttended) assert.ok(decision.do !== 'ask' && decision.do !== 'wait', short(decision))
        if (decision.do !== 'type') continue
        for (const planned of decision.values) {
          const key = planned.source === 'totp' ? 'totp' : typedKey(shown, planned.field)
          typed = [...typed, key]
          if (planned.field.purpose === 'password') passwords.set(key, (passwords.get(key) ?? 0) + 1)
        }
      }
      assert.ok([...passwords.values()].every((times) => times === 1))
      assert.ok(typed.filter((key) => key === 'totp').length <= 2)
    }),
    { numRuns: 2000 },
  )
})
