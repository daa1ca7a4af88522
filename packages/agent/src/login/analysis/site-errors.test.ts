import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withoutSecrets } from '../driver/fill-form.ts'
import { TypedPasswords } from '../login-attempt.ts'
import { mfaTypeOf } from './choices.ts'
import { kindOfCode } from './fields.ts'
import { problemOf } from './site-errors.ts'

test('the first match in an error decides its kind', () => {
  for (const [text, problem] of [
    ['Incorrect password. Too many attempts will lock your account.', 'credentials_invalid'],
    ['Too many failed login attempts. Try again later.', 'rate_limited'],
    ['Your account has been locked due to incorrect attempts', 'account_locked'],
    ['Das Passwort ist falsch.', 'credentials_invalid'],
    ['パスワードが正しくありません。', 'credentials_invalid'],
    ['Le code a expiré', 'session_expired'],
    ['Welcome back', undefined],
  ] as const) {
    assert.equal(problemOf(text, false), problem, text)
  }
  assert.equal(problemOf('Le code a expiré', true), 'code_rejected')
})

test('labels name the verification method', () => {
  for (const [label, type] of [
    ['Text me a code at •••• 42', 'sms'],
    ['Code per E-Mail senden', 'email'],
    ['Use your authenticator app', 'totp'],
    ['Send me a push notification', 'push'],
    ['Utiliser une clé de sécurité', 'passkey'],
    ['別の方法を試す', 'switch'],
    ['Our story', undefined],
  ] as const) {
    assert.equal(mfaTypeOf(label), type, label)
  }
  assert.equal(kindOfCode('Code', 'We sent it to a•••@example.com'), 'email_code')
  assert.equal(kindOfCode('Code', 'Open the authenticator app'), 'totp')
  assert.equal(kindOfCode('Code', ''), 'code')
})

test('a password counts as typed on its site only', () => {
  const typed = new TypedPasswords()
  typed.note('shop.test', 'secret')

  assert.deepEqual(
    [typed.has('shop.test', 'secret'), typed.has('other.test', 'secret'), typed.has('shop.test', 'other')],
    [true, false, false],
  )
})

test('a secret that a page repeats is not reported', () => {
  const page = {
    page_key: '1.a',
    url: 'https://shop.test/?p=a%26b%20c',
    title: 'Wrong: a&b c',
    state: 'error',
    fields: [],
    choices: [],
    website_error: 'a&b c is wrong',
  } as const

  const told = withoutSecrets({ ...page, fields: [], choices: [] }, ['a&b c'])

  assert.deepEqual(
    [told.url, told.title, told.website_error],
    ['https://shop.test/?p=•••', 'Wrong: •••', '••• is wrong'],
  )
})
