import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import type { LoginChoice, LoginField, LoginPage } from '@berth/contract/agent/login/login-page.ts'
import { maxLoginChoices, maxLoginFields, maxLoginText } from '@berth/contract/agent/login/login-page.ts'
import type { ModelMessage } from '../../../models/model-client.ts'
import type { Decision, FlowView } from './decide.ts'
import { LoginAdvisor, messagesOf, openChoices } from './login-advisor.ts'

const totp = () => ({ code: '123456', expiresAt: new Date() })
const storedLogin = { version: 'v', values: new Map([['username', 'ann']]), ssoProvider: null, totp: undefined }
const view: FlowView = { isAttended: true, storedLogin, typed: [], hasActed: true, looks: 0 }
const ask: Decision = { do: 'ask', known: [] }
const choice = (kind: LoginChoice['kind'], more: Partial<LoginChoice> = {}): LoginChoice => ({
  ...{ ref: 'c0', kind, label: 'Press me', selector: '//button' },
  ...more,
})
const page = (more: Partial<LoginPage> = {}): LoginPage => ({
  ...{ page_key: 'k', url: 'https://site.test/', title: '', state: 'choice', fields: [], choices: [] },
  ...more,
})
const field: LoginField = {
  ref: 'f0',
  name: 'code',
  label: '',
  purpose: 'other',
  input_mode: 'text',
  required: true,
  is_rejected: false,
  selector: '#code',
}

const asked = (question: Partial<Parameters<typeof messagesOf>[0]>) =>
  messagesOf({ page: page(), storedLogin, inputs: new Map(), choices: [], ...question })
const shownTo = (messages: readonly ModelMessage[]) => messages.map(({ content }) => content).join('\n')

for (const secret of [
  'hunter2',
  'correct horse battery',
  'p@ss+w/rd=&?#%',
  '(.*)[$^]{2}|\\d',
  'quote"d',
  'pässwörd-ключ',
  'xy',
]) {
  test(`a request to a model does not contain ${secret}, in any spelling of the page`, () => {
    const encoded = encodeURIComponent(secret)
    const spellings = [secret, secret.toUpperCase(), encoded, encoded.toLowerCase(), encoded.replaceAll('%20', '+')]
    const text = `<${spellings.join('> <')}>`
    const question = {
      page: page({
        url: `https://site.test/${encoded}?q=${encoded}#${encoded}`,
        title: text,
        fields: [{ ...field, label: text }],
      }),
      choices: [choice('account', { label: text, description: text })],
    }

    for (const known of [
      { storedLogin: { ...storedLogin, values: new Map([['secret', secret]]) } },
      { inputs: new Map([['secret', secret]]) },
    ]) {
      const { page: shown, ...rest } = JSON.parse(asked({ ...question, ...known })[1]?.content ?? '{}')
      const texts = [
        shown.address,
        shown.title,
        rest.fields[0].label,
        rest.choices[0].label,
        rest.choices[0].description,
      ]

      for (const spelling of spellings) {
        for (const sent of texts)
          assert.ok(!sent.toLowerCase().includes(spelling.toLowerCase()), `${spelling}: ${sent}`)
      }
      assert.match(shown.title, /‹secret›/)
    }
  })
}

test('possible codes and tokens, queries and the values of choices are not sent either', () => {
  const sent = shownTo(
    asked({
      page: page({
        url: `https://site.test/${'t'.repeat(30)}/x7Ab9/choose-account?code=55512#x`,
        title: 'Code 12345, 987 654, 31-41, GEZDGNBVGY3TQOJQ',
      }),
      choices: [choice('account', { label: `Session ${'aB3_'.repeat(10)}`, selector: '//button[@id="planted"]' })],
    }),
  )

  for (const part of ['ttt', 'x7Ab9', '55512', '12345', '987', '654', '31-41', 'GEZDGNBVGY3TQOJQ', 'aB3_', 'planted'])
    assert.ok(!sent.includes(part), part)
  assert.match(sent, /choose-account/)
})

test('the longest page results in a short request', () => {
  const text = 'word '.repeat(maxLoginText / 5)
  const choices = Array.from({ length: maxLoginChoices }, (_value, index) =>
    choice('account', { ref: `c${index}`, label: text, description: text }),
  )
  const fields = Array.from({ length: maxLoginFields }, () => ({ ...field, label: text }))

  const sent = shownTo(
    asked({ page: page({ url: `https://site.test/${'a/'.repeat(900)}`, title: text, fields }), choices }),
  )

  assert.ok(sent.length < 20_000, `${sent.length}`)
})

const offers: readonly (readonly [
  what: string,
  LoginChoice,
  Partial<LoginPage>,
  Partial<FlowView>,
  Decision,
  boolean,
])[] = [
  ['an account', choice('account'), {}, {}, ask, true],
  ['a password', choice('method', { mfa_type: 'password' }), {}, {}, ask, true],
  ['another way', choice('mfa', { mfa_type: 'switch' }), {}, {}, ask, true],
  [
    'codes of a stored secret',
    choice('mfa', { mfa_type: 'totp' }),
    {},
    { storedLogin: { ...storedLogin, totp } },
    ask,
    true,
  ],
  ['codes without a secret', choice('mfa', { mfa_type: 'totp' }), {}, {}, ask, false],
  ['a message to a phone', choice('mfa', { mfa_type: 'sms' }), {}, {}, ask, false],
  ['a notification', choice('mfa', { mfa_type: 'push' }), {}, {}, ask, false],
  ['another service', choice('sso', { provider: 'acme' }), {}, {}, ask, false],
  ['terms', choice('terms'), {}, {}, ask, false],
  ['what was pressed', choice('account'), {}, { typed: ['choice site.test/Press me'] }, ask, false],
  ['anything, where nothing is stored', choice('account'), {}, { storedLogin: undefined }, ask, false],
  ['anything, where the driver knows', choice('account'), {}, {}, { do: 'succeed' }, false],
  ['anything, after a refusal', choice('account'), { problem: 'credentials_invalid' }, {}, ask, false],
  ['anything beside a form, with a person', choice('method'), { state: 'form', fields: [field] }, {}, ask, false],
  [
    'another way beside a form, without a person',
    choice('method'),
    { state: 'form', fields: [field] },
    { isAttended: false },
    { do: 'fail', failure: { code: 'customer_input_required', message: '' } },
    true,
  ],
  [
    'anything, where the site has refused the login',
    choice('account'),
    {},
    { isAttended: false },
    { do: 'fail', failure: { code: 'credentials_invalid', message: '' } },
    false,
  ],
]

for (const [what, offered, more, known, decision, isOpen] of offers) {
  test(`a model may ${isOpen ? '' : 'not '}choose ${what}`, () => {
    const open = openChoices(page({ choices: [offered], ...more }), { ...view, ...known }, decision)

    assert.equal(open.length, isOpen ? 1 : 0)
  })
}

test('a model that does not respond in time is ignored, and the log does not quote the page', async () => {
  const warnings: unknown[] = []
  const logger = { warn: (...about: unknown[]) => void warnings.push(about) }
  const silent = {
    ask: async (_messages: readonly ModelMessage[], signal: AbortSignal) => {
      await delay(60_000, undefined, { signal })
      return '{}'
    },
  }
  const advisor = new LoginAdvisor({ model: silent, logger, limitMilliseconds: 20 })
  const question = { page: page({ title: 'planted' }), storedLogin, inputs: new Map(), choices: [choice('account')] }

  assert.equal(await advisor.advise(question, new AbortController().signal), undefined)
  assert.equal(warnings.length, 1)
  assert.doesNotMatch(JSON.stringify(warnings), /planted/)
  await assert.rejects(advisor.advise(question, AbortSignal.abort(new Error('the flow was stopped'))), /was stopped/)
})
